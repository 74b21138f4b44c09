"""Charts are functions of their frames."""

import pandas as pd

from dashboard.charts.accuracy_by_length import accuracy_by_length


def test_every_seed_is_a_line_and_every_configuration_a_median() -> None:
    seeds = pd.DataFrame(
        {
            "configuration": ["b", "b", "a", "a"],
            "model_seed": [0, 1, 0, 1],
            "run_id": [1, 2, 3, 4],
            "middle": 5.5,
            "lengths": "1 to 10",
            "strings": 10,
            "misclassified": [0, 1, 2, 3],
            "accuracy": [1.0, 0.9, 0.8, 0.7],
        }
    )
    medians = pd.DataFrame(
        {
            "configuration": ["b", "a"],
            "middle": 5.5,
            "lengths": "1 to 10",
            "accuracy": [0.95, 0.75],
            "seeds": 2,
        }
    )
    limits = pd.DataFrame({"length": [10, 50], "label": ["end of training", "end of validation"]})
    spec = accuracy_by_length(seeds, medians, limits).to_dict()
    rules, labels, lines, median, hover = spec["layer"]
    assert [layer["mark"]["type"] for layer in spec["layer"]] == [
        "rule", "text", "line", "line", "point"
    ]  # fmt: skip
    assert lines["encoding"]["detail"]["field"] == "run_id"
    assert lines["mark"]["strokeWidth"] < median["mark"]["strokeWidth"]
    # The order is that of the table, and both layers color a configuration alike.
    for layer in (lines, median):
        assert layer["encoding"]["color"]["scale"]["domain"] == ["b", "a"]
        assert layer["encoding"]["x"]["title"] == "String length (letters)"
    assert "Model seed" in [tip["title"] for tip in hover["encoding"]["tooltip"]]
    data = spec["datasets"]
    assert data[lines["data"]["name"]] == seeds.to_dict("records")
    assert data[median["data"]["name"]] == medians.to_dict("records")
    assert [row["length"] for row in data[rules["data"]["name"]]] == [10, 50]
    assert labels["encoding"]["text"]["field"] == "label"

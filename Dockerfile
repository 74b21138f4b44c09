# A read-only dashboard of runs.db: docs/publishing.md says how it is built and run. No test builds it.
FROM python:3.13-slim
WORKDIR /seqcls
COPY . .
ARG PIP_EXTRA_INDEX_URL
RUN pip install --no-cache-dir --constraint constraints.txt . && useradd --create-home visitor
USER visitor
EXPOSE 8501
CMD ["seqcls", "dashboard", "--read-only", "--host", "0.0.0.0", "--db", "/seqcls/runs.db"]

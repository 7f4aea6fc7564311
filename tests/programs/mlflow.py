"""MLflow with its Python client: runs, metrics, artifacts, registered models, and its pages."""

from __future__ import annotations

import urllib.request
from pathlib import Path

from tests.programs.running.application import Application, Steps


class Mlflow(Application):
    # MLflow asks for a gunicorn of before 27.
    requirements = ("mlflow==3.17.2", "gunicorn==26.2.0")
    target = "mlflow.server:app"
    environ = (
        *("_MLFLOW_SERVER_FILE_STORE=sqlite:///mlflow.db", "_MLFLOW_SERVER_SERVE_ARTIFACTS=true"),
        "_MLFLOW_SERVER_ARTIFACT_DESTINATION=artifacts",
        "_MLFLOW_SERVER_ARTIFACT_ROOT=mlflow-artifacts:/",
        *("MLFLOW_DISABLE_TELEMETRY=true", "MLFLOW_ENABLE_ASYNC_LOGGING=false"),
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES=0",
    )
    path = "/health"

    def prepare(self) -> None:
        self.run("mlflow", "db", "upgrade", "sqlite:///mlflow.db")

    def drive(self) -> Steps:
        import mlflow

        mlflow.set_tracking_uri(self.url)
        experiment = mlflow.create_experiment("Versuch ✓")
        yield "experiment", experiment
        files = Path("files")
        files.mkdir()
        (files / "large.bin").write_bytes(bytes(range(256)) * 30_000)
        (files / "käse.txt").write_text("Käse")
        with mlflow.start_run(experiment_id=experiment, run_name="first") as run:
            mlflow.log_params({"rate": 0.1, "text": "ö" * 400})
            for step in range(20):
                mlflow.log_metric("loss", 1 / (step + 1), step=step)
            mlflow.set_tag("colour", "red")
            mlflow.log_artifacts(str(files))
            mlflow.log_dict({"a": [1, 2]}, "some/data.json")
        client = mlflow.MlflowClient()
        history = client.get_metric_history(run.info.run_id, "loss")
        yield "metrics", [[each.step, each.value] for each in history]
        data = client.get_run(run.info.run_id).data
        yield "parameters", [dict(data.params), data.tags["colour"], data.metrics["loss"]]
        listed = client.list_artifacts(run.info.run_id)
        yield "artifacts", [[each.path, each.is_dir, each.file_size] for each in listed]
        received = Path(client.download_artifacts(run.info.run_id, "", "."))
        same = (received / "large.bin").read_bytes() == (files / "large.bin").read_bytes()
        yield "download", [same, (received / "käse.txt").read_text()]
        client.create_registered_model("model")
        client.create_model_version("model", f"{run.info.artifact_uri}/some", run.info.run_id)
        client.set_registered_model_alias("model", "best", 1)
        yield "model", client.get_model_version_by_alias("model", "best").version
        try:
            client.get_run("0" * 32)
        except mlflow.MlflowException as error:
            yield "error", str(error)
        for path in ("/", "/version"):
            with urllib.request.urlopen(f"{self.url}{path}") as response:
                yield path, [response.headers["Content-Type"], len(response.read())]

"""External work: a task returns one of these, or a list of them, and completes when they are done.
"""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field
import json
from typing import Any, Dict, List, Optional


class Deferrable(ABC):
    """A job of another service."""

    @abstractmethod
    def service_type(self) -> str:
        """Returns the service of the job."""

    @abstractmethod
    def tracking_id(self) -> str:
        """Returns the id of the job in that service."""

    def to_dict(self) -> Dict[str, Any]:
        fields = {"service_type": self.service_type(), "job_id": self.tracking_id()}
        fields.update(asdict(self))
        return fields

    def to_json(self) -> str:
        return json.dumps(self.to_dict())


@dataclass
class BigQueryJob(Deferrable):
    project: str
    job_id: str
    location: str = "US"

    def service_type(self) -> str:
        return "bigquery"

    def tracking_id(self) -> str:
        return self.job_id


@dataclass
class CloudRunJob(Deferrable):
    project: str
    region: str
    job_name: str
    execution_id: str

    def service_type(self) -> str:
        return "cloudrun"

    def tracking_id(self) -> str:
        return self.execution_id


@dataclass
class DataprocJob(Deferrable):
    project: str
    region: str
    cluster_name: str
    job_id: str

    def service_type(self) -> str:
        return "dataproc"

    def tracking_id(self) -> str:
        return self.job_id


@dataclass
class CustomHttp(Deferrable):
    url: str
    method: str = "GET"
    headers: Dict[str, str] = field(default_factory=dict)
    success_status_codes: List[int] = field(default_factory=lambda: [200])
    completion_field: str = "status"
    completion_value: str = "completed"
    failure_value: Optional[str] = None

    def service_type(self) -> str:
        return "custom_http"

    def tracking_id(self) -> str:
        return self.url

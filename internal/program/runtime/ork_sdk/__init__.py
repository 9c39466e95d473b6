"""External work, for tasks written with the package of this name."""

from .deferrables import BigQueryJob, CloudRunJob, CustomHttp, DataprocJob, Deferrable

__all__ = ["BigQueryJob", "CloudRunJob", "CustomHttp", "DataprocJob", "Deferrable"]

"""Same as in the package ork_sdk."""

from ork_sdk.deferrables import BigQueryJob, CloudRunJob, CustomHttp, DataprocJob, Deferrable

__all__ = ["BigQueryJob", "CloudRunJob", "CustomHttp", "DataprocJob", "Deferrable"]

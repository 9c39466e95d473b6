package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/dialect/ork"
)

const functionsOfPython = `
import datetime
from dataclasses import dataclass
from enum import Enum
from typing import Any, Dict, List, Optional, TypedDict
from ork import Context, task

class Color(Enum):
    RED = "red"

@dataclass
class Order:
    id: int
    at: Optional[datetime.date]
    color: Color
    inside: "Optional[List[Order]]" = None

class Totals(TypedDict):
    sum: float
    when: datetime.datetime

@task
def total(order: Order, ctx: Context, rate: float = 1.0) -> Totals: ...

@task(name="x")
async def options(day: datetime.date, more: Dict[str, Any], rest: Optional[str] = None) -> List[int]: ...

def plain(a, *b, **c): ...
def _hidden(): ...
`

func TestPythonFunctionsAreShownInTypesOfWorkflowFiles(t *testing.T) {
	file := write(t, "tasks.py", functionsOfPython)
	got := call(t, "ork", "schema", file)
	require.Zero(t, got.code, got.stderr)
	require.Equal(t, `types:
  Order:
    id: int
    at: date?
    color: str
    inside: [types.Order]
  Totals:
    sum: float
    when: datetime_tz
functions:
  total:
    input_type:
      order: types.Order
      rate: float
    required: [order]
    output_type: types.Totals
  options:
    input_type:
      day: date
      more: ~ # there is no word for this type
      rest: str?
    required: [day, more]
    output_type: [int]
  plain:
    input_type:
      a: ~ # there is no word for this type
    required: [a]
    output_type: ~ # there is no word for this type
`, got.stdout)
	all := parse[[]ork.Signatures](t, call(t, "ork", "schema", "-o", "json", file).stdout)
	require.Len(t, all, 1)
	require.Equal(t, file, all[0].File)
}

func TestAFileThatCannotBeImportedHasNoSchema(t *testing.T) {
	got := call(t, "ork", "schema", write(t, "tasks.py", "import nothing_of_that_name"))
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "its functions cannot be told: exit status 1: "+
		"ModuleNotFoundError: No module named 'nothing_of_that_name'")
	require.Equal(t, exitUsage, call(t, "ork", "schema", "there-is-none.py").code)
}

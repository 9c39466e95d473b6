package program

import (
	"encoding/json"
	"maps"
	"strconv"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/internal/child"
)

// Facts is the information about a job that a program sees besides its input.
type Facts struct {
	Run, Flow, Step string // ids of the task, its flow and the node
	Unit, Units     int
	// number of units of each item; 0 if it is one, or if the units have no items
	PerItem         int
	Many            bool // whether the job is one of several units
	Attempt         int
	Task, Execution string // unique ids of the unit and of the attempt
	Retries         int    // -1 if unknown
	TimeoutMS       int64
	Upstream        json.RawMessage   // results of the dependencies
	Own             map[string]string // further variables
}

// maxVariable is the largest input that is put into a variable. The kernel accepts at most 128 KiB
// per variable.
const maxVariable = 96 << 10

// inputFiles holds the inputs that are too large for a variable.
var inputFiles = child.NewFiles("troupe-inputs-*")

// writeVariables returns the environment variables of the program. The function cleanup removes the
// files for values too large for a variable.
func (j *Job) writeVariables(input []byte) (vars map[string]string, cleanup func(), err error) {
	file, removed, err := writeLarge(input)
	if err != nil {
		return nil, removed, err
	}
	vars = j.Variables(input, file)
	if !j.Program.Upstream || !Large(j.Facts.Upstream) {
		return vars, removed, nil
	}
	upstream, alsoRemoved, err := writeLarge(j.Facts.Upstream)
	vars["ORK_UPSTREAM_FILE"] = upstream
	return vars, func() { removed(); alsoRemoved() }, err
}

// writeLarge writes a text that is too large for a variable to a file.
func writeLarge(text []byte) (file string, remove func(), err error) {
	if !Large(text) {
		return "", func() {}, nil
	}
	return inputFiles.Write("*.json", text)
}

// Large reports whether an input is passed in a file instead of a variable.
func Large(input []byte) bool { return len(input) > maxVariable }

// Variables returns the environment variables of a program. The argument file is the path of the
// input if the input is Large.
func (j *Job) Variables(input []byte, file string) map[string]string {
	f := &j.Facts
	vars := f.jobVariables()
	if text := j.Program.Command; text != "" {
		vars["command"] = text
	}
	if item, ok := expr.Field(input, "item"); ok && f.Many && len(item) <= maxVariable {
		vars["ORK_ITEM_JSON"] = string(item)
	}
	if j.Program.Upstream && len(f.Upstream) > 0 && len(f.Upstream) <= maxVariable {
		vars["ORK_UPSTREAM_JSON"] = string(f.Upstream)
	}
	if Large(input) {
		vars["ORK_INPUT_FILE"] = file
	} else {
		vars["ORK_INPUT_JSON"] = string(input)
	}
	maps.Copy(vars, f.Own)
	maps.Copy(vars, j.Program.Env)
	return vars
}

// jobVariables returns the variables that identify the job.
func (f *Facts) jobVariables() map[string]string {
	attempt := strconv.Itoa(f.Attempt)
	vars := map[string]string{
		"ORK_ATTEMPT": attempt, "ORK_TASK_ID": f.Task, "ORK_TASK_NAME": f.Step,
		"ORK_WORKFLOW_NAME": f.Flow, "ORK_RUN_ID": f.Run, "EXECUTION_ID": f.Execution,
		"attempt": attempt, "task_name": f.Step, "workflow_name": f.Flow, "run_id": f.Run,
	}
	if f.Retries >= 0 {
		vars["max_retries"] = strconv.Itoa(f.Retries)
	}
	if f.TimeoutMS > 0 {
		vars["timeout_seconds"] = strconv.FormatFloat(float64(f.TimeoutMS)/1000, 'f', -1, 64)
	}
	if f.Many {
		f.addUnitVariables(vars)
	}
	return vars
}

// addUnitVariables adds the unit's index and the number of units: among all units, or among those
// of its item if items have several units.
func (f *Facts) addUnitVariables(vars map[string]string) {
	index, count := f.Unit, f.Units
	if f.PerItem > 0 {
		vars["item_index"], vars["item_count"] = strconv.Itoa(f.Unit/f.PerItem), strconv.Itoa(f.Units/f.PerItem)
		index, count = f.Unit%f.PerItem, f.PerItem
	}
	vars["task_index"], vars["ORK_PARALLEL_INDEX"],
		vars["ORK_PARALLEL_COUNT"] = strconv.Itoa(f.Unit), strconv.Itoa(index), strconv.Itoa(count)
}

// inputLine returns an input as one line.
func inputLine(input json.RawMessage) []byte {
	if compact := expr.Compact(input); len(compact) > 0 {
		return compact
	}
	return []byte("null")
}

// stdinFor returns the standard input of a program.
func stdinFor(p *flow.Program, input []byte) []byte {
	if p.StdinMode == flow.StdinNone {
		return nil
	}
	return append(append(make([]byte, 0, len(input)+1), input...), '\n')
}

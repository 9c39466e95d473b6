package program

import (
	"encoding/json"
	"maps"
	"strconv"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/internal/child"
)

// Facts are what a program is told of its job, beside its input.
type Facts struct {
	Run, Flow, Step string // the task, its flow and the node
	Unit, Units     int
	PerItem         int  // how many units each item has; 0 = one, or they are of no items
	Many            bool // it is one of several units
	Attempt         int
	Task, Execution string // what tells the unit, and the attempt, from all others
	Retries         int    // -1 = nobody knows
	TimeoutMS       int64
	Upstream        json.RawMessage   // what its dependencies have given
	Own             map[string]string // further variables
}

// maxVariable is how large an input may be to be found in a variable: a kernel takes no more than
// 128 KiB for one.
const maxVariable = 96 << 10

// inputFiles are the files of those that are too large for a variable.
var inputFiles = child.NewFiles("troupe-inputs-*")

// writeVariables are what the program finds in its environment; cleanup removes the files of what
// is too large for that.
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

// writeLarge puts what is too large for a variable into a file.
func writeLarge(text []byte) (file string, remove func(), err error) {
	if !Large(text) {
		return "", func() {}, nil
	}
	return inputFiles.Write("*.json", text)
}

// Large says that something is found in a file, not in a variable.
func Large(input []byte) bool { return len(input) > maxVariable }

// Variables are what the program finds in its environment whose input is in a file, when it is
// Large.
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

// jobVariables say which job it is.
func (f *Facts) jobVariables() map[string]string {
	attempt := strconv.Itoa(f.Attempt)
	vars := map[string]string{
		"ORK_ATTEMPT": attempt, "ORK_TASK_ID": f.Task, "ORK_TASK_NAME": f.Step, "ORK_WORKFLOW_NAME": f.Flow, "ORK_RUN_ID": f.Run, "EXECUTION_ID": f.Execution,
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

// addUnitVariables says which of several units it is: of all, or, where each item has several, of
// those of its item.
func (f *Facts) addUnitVariables(vars map[string]string) {
	index, count := f.Unit, f.Units
	if f.PerItem > 0 {
		vars["item_index"], vars["item_count"] = strconv.Itoa(f.Unit/f.PerItem), strconv.Itoa(f.Units/f.PerItem)
		index, count = f.Unit%f.PerItem, f.PerItem
	}
	vars["task_index"], vars["ORK_PARALLEL_INDEX"], vars["ORK_PARALLEL_COUNT"] = strconv.Itoa(f.Unit), strconv.Itoa(index), strconv.Itoa(count)
}

// inputLine is an input in one line, as programs find it.
func inputLine(input json.RawMessage) []byte {
	if compact := expr.Compact(input); len(compact) > 0 {
		return compact
	}
	return []byte("null")
}

// stdinFor is what a program has to read.
func stdinFor(p *flow.Program, input []byte) []byte {
	if p.StdinMode == flow.StdinNone {
		return nil
	}
	return append(append(make([]byte, 0, len(input)+1), input...), '\n')
}

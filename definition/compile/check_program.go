package compile

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// isLocalProgram reports whether a node runs a program that the member itself starts.
func isLocalProgram(n *definition.Node) bool { return n.Exec.Program() != nil && n.Exec.Service == "" }

// asServiceNode converts a node with a program for workers. The result is a node of the workers'
// service, with the program in its params.
func asServiceNode(n *definition.Node) *definition.Node {
	p := n.Exec.Program()
	if p == nil || isLocalProgram(n) {
		return n
	}
	// texts and numbers can always be encoded
	along, _ := json.Marshal(map[string]any{flow.ProgramParam: struct {
		Type string `json:"type"`
		*flow.Program
	}{n.Exec.Type, p}})
	own := n.Apart()
	own.Params = expr.Merge(compactParams(n.Params), along)
	return own
}

// checkProgram checks the program of a node.
func (c *checker) checkProgram(n *definition.Node, at *definition.Place) {
	e := n.Exec
	if e.Program() == nil {
		return
	}
	in := at.Key("exec")
	switch {
	case n.Service != "" || n.Func != "" || n.Script != nil || isLocalProgram(n) && saysExec(n):
		c.Errorf(in, "says the same as service, func, script and exec_type: give one of them")
	case e.Func != "":
		c.Errorf(in, "is a func or a program: give one of them")
	case isLocalProgram(n) && n.Route != "":
		c.Errorf(at.Key("route"), "is for jobs of workers, and the member itself starts the "+
			"program: name the service of its workers in exec")
	}
	for _, f := range programFields(e) {
		if f.isSet {
			c.Errorf(in.Key(f.name), "%s", f.instead)
		}
	}
	c.programStart(e, in)
	c.programWords(e, in)
}

// idleField is a field that has no effect, with a suggestion.
type idleField struct {
	name    string
	isSet   bool
	instead string
}

// refuseProgramFields reports fields of a program in an exec without a program.
func (c programChecker) refuseProgramFields(e *definition.ExecOf, at *definition.Place) {
	v := reflect.ValueOf(*e)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if written(v.Field(i)) && name != "type" && name != "service" && name != "func" {
			c.Errorf(at.Key(name), "is for a program: set type to process, python, library, container or worker")
		}
	}
}

// programFields returns the fields that do not apply to the type of program.
func programFields(e *definition.ExecOf) []idleField {
	const elsewhere = "is for type: worker"
	other := append(containerFields(e), idleField{"url", e.URL != "", elsewhere}, idleField{"executor", e.Executor != "", elsewhere})
	switch flow.ExecType(e.Type) {
	case flow.ExecWorker:
		return append(workerFields(e), containerFields(e)...)
	case flow.ExecContainer:
		return notForContainers(e)
	case flow.ExecPython:
		const why = "is for a process: name the file or module with the function"
		return append(other, idleField{"command", !e.Command.IsZero(), why})
	case flow.ExecLibrary:
		const why = "is not for a library: its file is all that it has"
		return append(other, []idleField{{"command", !e.Command.IsZero(), why},
			{"module", e.Module != "", why}, {"function", e.Function != "", why},
			{"python", e.Python != "", why},
			{"output_mode", e.OutputMode != "", why}, {"warm", e.Warm != 0, why}}...)
	}
	const why = "is for type: python"
	return append(other, []idleField{{"module", e.Module != "", why},
		{"function", e.Function != "", why}, {"python", e.Python != "", why}, {"warm", e.Warm != 0, why}}...)
}

// programStart checks the command, file or function to start.
func (c programChecker) programStart(e *definition.ExecOf, at *definition.Place) {
	args := e.Command.Args
	switch {
	case args != nil && (len(args) == 0 || args[0] == ""):
		c.Errorf(at.Key("command"), "names no program")
	case flow.ExecType(e.Type) == flow.ExecWorker:
		c.orkWorker(e, at)
	case flow.ExecType(e.Type) == flow.ExecContainer:
		c.checkContainer(e, at)
	case flow.ExecType(e.Type) == flow.ExecProcess && e.Command.IsZero() == (e.File == ""):
		c.Errorf(at, "give it a command or a file: one of them")
	case flow.ExecType(e.Type) == flow.ExecPython && (e.Module == "") == (e.File == ""):
		c.Errorf(at, "give it a file or a module: one of them")
	case flow.ExecType(e.Type) == flow.ExecLibrary && e.File == "":
		c.Errorf(at.Key("file"), "is missing: name the library, such as lib/task.so")
	}
	for _, text := range append([]string{e.Command.Line, e.File, e.Module, e.Function, e.Python, e.Root, e.URL, e.Image, e.User}, args...) {
		if strings.ContainsRune(text, 0) {
			c.Errorf(at, "holds a NUL character, which no program can be given")
			return
		}
	}
}

// programWords checks the settings of a program.
func (c *checker) programWords(e *definition.ExecOf, at *definition.Place) {
	switch contained := flow.ExecType(e.Type) == flow.ExecContainer; {
	case e.StdinMode == "" || e.StdinMode == flow.StdinNone || contained && e.StdinMode == flow.StdinJSON:
	case contained:
		c.Errorf(at.Key("stdin_mode"), "unknown word %.80q: write json or none", e.StdinMode)
	default:
		c.Errorf(at.Key("stdin_mode"), "unknown word %.80q: write none, or leave it out", e.StdinMode)
	}
	if e.OutputMode != "" && e.OutputMode != flow.OutputMarker {
		c.Errorf(at.Key("output_mode"), "unknown word %.80q: write marker, or leave it out", e.OutputMode)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Env)) {
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			c.Errorf(at.Key("env").Key(name), "is no name of a variable")
		case strings.ContainsRune(string(e.Env[name]), 0):
			c.Errorf(at.Key("env").Key(name), "holds a NUL character, which no variable can")
		}
	}
	if e.Report != "" && e.Report != flow.ReportExit && e.Report != flow.ObjectStore {
		c.Errorf(at.Key("report"), "unknown word %.80q: write %s or %s", e.Report, flow.ReportExit, flow.ObjectStore)
	}
	if e.Report == flow.ObjectStore && e.Service != "" {
		c.Errorf(at.Key("report"), "is for programs that the member itself starts: leave out service, or report")
	}
	if e.Warm < 0 || e.Warm > flow.MaxWarm {
		c.Errorf(at.Key("warm"), "must be a number from 0 to %d", flow.MaxWarm)
	}
	c.checkSecrets(e, at.Key("secrets"))
	c.checkResources(e, at.Key("resources"))
	c.checkMilliseconds(e.Grace.MS, at.Key("grace"))
}

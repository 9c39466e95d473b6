package define

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// ExecOf says who does a node's work in one object, instead of the fields service, func and
// exec_type; and which program, when it is one.
type ExecOf struct {
	Type    string `json:"type,omitempty"`    // service, func, process, python, library, container or worker; told by the other fields when absent
	Service string `json:"service,omitempty"` // whose workers carry it out
	Func    string `json:"func,omitempty"`    // name of the local function

	Command     Command          `json:"command,omitzero"`       // process: a shell line, or a list of a program and its arguments
	File        string           `json:"file,omitempty"`         // process: file that is started; python: file with the function; library: file that is loaded
	Module      string           `json:"module,omitempty"`       // python: module with the function, instead of a file
	Function    string           `json:"function,omitempty"`     // python: name of the function; main when absent
	Python      string           `json:"python,omitempty"`       // python: interpreter, a name or a path
	Warm        int              `json:"warm,omitempty"`         // python: so many interpreters are kept warm, each of which forks itself for attempts; up to 16
	Root        string           `json:"root,omitempty"`         // folder it runs in, inside --script-dir; container: where the paths of mounts begin
	Env         map[string]Plain `json:"env,omitempty"`          // variables of its environment
	StdinMode   string           `json:"stdin_mode,omitempty"`   // none: it has nothing to read; else its input is one line of JSON. container: json hands it that, by the image's /bin/sh; else it has nothing to read
	OutputMode  string           `json:"output_mode,omitempty"`  // marker: only lines that begin with ORK_OUTPUT: are its output; else all that it prints, too, if that is JSON
	Grace       Duration         `json:"grace,omitzero"`         // between being asked to end and being killed; 10s when absent
	UpstreamEnv bool             `json:"upstream_env,omitempty"` // it finds the outputs of its dependencies in ORK_UPSTREAM_JSON, too
	URL         string           `json:"url,omitempty"`          // worker: where an Ork worker is, such as http://127.0.0.1:8081
	Executor    string           `json:"executor,omitempty"`     // worker: as what it runs it, process, python or library; told by the other fields when absent
	Report      string           `json:"report,omitempty"`       // who says how it is: exit, its output and exit; object_store, files beside the one that TASK_SPEC_PATH names. exit when absent

	Secrets map[string]SecretOf `json:"secrets,omitempty"` // variables of its environment that have secrets: the name of one, or {secret, file} for a file whose path the variable has

	Image     string     `json:"image,omitempty"`     // container: what it is made of
	Pull      string     `json:"pull,omitempty"`      // container: when the image is fetched: missing (the default), always or never
	Network   string     `json:"network,omitempty"`   // container: none, bridge or the name of one, host where the operator allows it; the container host's default when absent
	User      string     `json:"user,omitempty"`      // container: whom it runs as, a name or number, with a group such as 1000:1000; the image's when absent
	GPUs      Plain      `json:"gpus,omitempty"`      // container: how many graphics processors of its host it has, or all; none when absent
	Mounts    []Mount    `json:"mounts,omitempty"`    // container: what it sees of the member's host
	Resources *Resources `json:"resources,omitempty"` // what it may use at most; only containers are held to all of it
	ToFile    string     `json:"to_file,omitempty"`   // container: file that its input is in, too
	FromFile  string     `json:"from_file,omitempty"` // container: file that has its output when it has ended
}

// SecretOf is a secret of a variable: its name, or its name and where a file with it is wanted.
type SecretOf flow.Secret

// MarshalJSON writes it as it is read.
func (s SecretOf) MarshalJSON() ([]byte, error) {
	if s.File == "" {
		return json.Marshal(s.Secret)
	}
	return json.Marshal(flow.Secret(s))
}

func (s *SecretOf) decodeValue(from decoder, v textValue, at *Place) {
	switch v.kind() {
	case expr.KindString:
		s.Secret, _ = expr.String(v.rawJSON())
	case expr.KindObject:
		from.decodeObject(v, reflect.ValueOf((*flow.Secret)(s)).Elem(), at)
	default:
		from.addProblem(SeverityError, at, v.position(), "must be the name of a secret, or {secret: …, file: …}, is %s", v.kind())
	}
}

// Command is a shell line, or a program and its arguments.
type Command struct {
	Line string
	Args []string
}

// IsZero says that nothing was written.
func (c Command) IsZero() bool { return c.Line == "" && c.Args == nil }

// MarshalJSON writes it as it is read.
func (c Command) MarshalJSON() ([]byte, error) {
	if c.Args != nil {
		return json.Marshal(c.Args)
	}
	return json.Marshal(c.Line)
}

func (c *Command) decodeValue(from decoder, v textValue, at *Place) {
	switch v.kind() {
	case expr.KindString:
		c.Line, _ = expr.String(v.rawJSON())
	case expr.KindArray:
		c.Args = []string{}
		for i, e := range v.elements() {
			var one Plain
			one.decodeValue(from, e, at.Index(i))
			c.Args = append(c.Args, string(one))
		}
	default:
		from.addProblem(SeverityError, at, v.position(), "must be a shell line or a list of a program and its arguments, is %s", v.kind())
	}
}

// Plain is a text, or a number or boolean as it is written.
type Plain string

func (p *Plain) decodeValue(from decoder, v textValue, at *Place) {
	switch v.kind() {
	case expr.KindString:
		text, _ := expr.String(v.rawJSON())
		*p = Plain(text)
	case expr.KindNumber, expr.KindBool:
		*p = Plain(v.rawJSON())
	default:
		from.addProblem(SeverityError, at, v.position(), "must be a text, a number, true or false, is %s", v.kind())
	}
}

// Program is what the object says is started; nil when it names nothing of the kind.
func (e *ExecOf) Program() *flow.Program {
	if e == nil || !flow.ExecType(e.Type).Programmed() {
		return nil
	}
	p := &flow.Program{Command: e.Command.Line, Args: slices.Clone(e.Command.Args), File: e.File, Module: e.Module, Function: e.Function, Python: e.Python,
		Warm: e.Warm, Root: e.Root, StdinMode: e.StdinMode, OutputMode: e.OutputMode, GraceMS: e.Grace.MS, Upstream: e.UpstreamEnv, URL: e.URL, Executor: e.workerExecutor(), Report: e.reportMode(), Container: e.toContainer()}
	if p.Container == nil {
		p.Memory, _ = e.Resources.Bytes() // what is wrong with it the compiler tells
	}
	if len(e.Env) > 0 {
		p.Env = make(map[string]string, len(e.Env))
		for name, value := range e.Env {
			p.Env[name] = string(value)
		}
	}
	if len(e.Secrets) > 0 {
		p.Secrets = make(map[string]flow.Secret, len(e.Secrets))
		for name, secret := range e.Secrets {
			p.Secrets[name] = flow.Secret(secret)
		}
	}
	return p
}

// reportMode is who says how it is, if not its exit.
func (e *ExecOf) reportMode() string {
	if e.Report == flow.ReportExit {
		return ""
	}
	return e.Report
}

// workerExecutor is as what an Ork worker runs it: what it says, or what can only be meant.
func (e *ExecOf) workerExecutor() string {
	switch {
	case flow.ExecType(e.Type) != flow.ExecWorker || e.Executor != "":
		return e.Executor
	case e.Module != "" || e.Function != "" || e.Python != "" || strings.HasSuffix(e.File, ".py"):
		return "python"
	}
	return "process"
}

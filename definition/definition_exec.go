package definition

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// ExecOf defines what does the work of a node, in one object instead of the fields service, func
// and exec_type. It also contains the program, if there is one.
type ExecOf struct {
	// service, func, process, python, library, container or worker; derived from the other fields
	// if absent
	Type    string `json:"type,omitempty"`
	Service string `json:"service,omitempty"` // service whose workers carry it out
	Func    string `json:"func,omitempty"`    // name of the local function

	// process: shell line, or list of a program and its arguments
	Command Command `json:"command,omitzero"`
	// process: file to start; python: file with the function; library: file to load
	File string `json:"file,omitempty"`
	// python: module with the function, used instead of a file
	Module string `json:"module,omitempty"`
	// python: name of the function; main if absent
	Function string `json:"function,omitempty"`
	Python   string `json:"python,omitempty"` // python: interpreter, a name or a path
	// python: number of interpreters that are kept running and fork themselves for attempts; up to
	// 16
	Warm int `json:"warm,omitempty"`
	// folder it runs in, inside --script-dir; container: base of the paths of mounts
	Root string           `json:"root,omitempty"`
	Env  map[string]Plain `json:"env,omitempty"` // environment variables
	// none: stdin is empty; otherwise stdin contains the input as one line of JSON. container: json
	// passes that through the image's /bin/sh; otherwise stdin is empty
	StdinMode string `json:"stdin_mode,omitempty"`
	// marker: only lines that begin with ORK_OUTPUT: are its output; otherwise everything it prints
	// counts too, if that is JSON
	OutputMode string `json:"output_mode,omitempty"`
	// time between the request to end and the kill; 10s if absent
	Grace Duration `json:"grace,omitzero"`
	// also pass the outputs of its dependencies in ORK_UPSTREAM_JSON
	UpstreamEnv bool `json:"upstream_env,omitempty"`
	// worker: address of an Ork worker, such as http://127.0.0.1:8081
	URL string `json:"url,omitempty"`
	// worker: executor to run it with: process, python or library; derived from the other fields if
	// absent
	Executor string `json:"executor,omitempty"`
	// how it reports its status: exit, through its output and exit code; object_store, through
	// files beside the one that TASK_SPEC_PATH names. exit if absent
	Report string `json:"report,omitempty"`

	// environment variables with secrets: the name of a secret, or {secret, file} for a file whose
	// path the variable contains
	Secrets map[string]SecretOf `json:"secrets,omitempty"`

	Image string `json:"image,omitempty"` // container: image to run
	// container: when to fetch the image: missing (the default), always or never
	Pull string `json:"pull,omitempty"`
	// container: none, bridge, the name of a network, or host if the operator allows it; the
	// container host's default if absent
	Network string `json:"network,omitempty"`
	// container: user to run as, a name or number, optionally with a group such as 1000:1000; that
	// of the image if absent
	User string `json:"user,omitempty"`
	// container: number of graphics processors of its host, or all; none if absent
	GPUs Plain `json:"gpus,omitempty"`
	// container: folders and files of the member's host
	Mounts    []Mount    `json:"mounts,omitempty"`
	Resources *Resources `json:"resources,omitempty"` // limits; only containers enforce all of them
	// container: file that also contains its input
	ToFile string `json:"to_file,omitempty"`
	// container: file that contains its output at the end
	FromFile string `json:"from_file,omitempty"`
}

// SecretOf is the secret of a variable: its name, or its name and the path of a file for it.
type SecretOf flow.Secret

// MarshalJSON encodes the secret as written.
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

// IsZero reports whether nothing was written.
func (c Command) IsZero() bool { return c.Line == "" && c.Args == nil }

// MarshalJSON encodes the command as written.
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

// Plain is a text, or a number or boolean in its written form.
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

// Program returns the program to start, or nil if the object names no program.
func (e *ExecOf) Program() *flow.Program {
	if e == nil || !flow.ExecType(e.Type).Programmed() {
		return nil
	}
	p := &flow.Program{Command: e.Command.Line, Args: slices.Clone(e.Command.Args), File: e.File,
		Module: e.Module, Function: e.Function, Python: e.Python,
		Warm: e.Warm, Root: e.Root, StdinMode: e.StdinMode, OutputMode: e.OutputMode,
		GraceMS: e.Grace.MS, Upstream: e.UpstreamEnv, URL: e.URL, Executor: e.workerExecutor(),
		Report: e.reportMode(), Container: e.toContainer()}
	if p.Container == nil {
		p.Memory, _ = e.Resources.Bytes() // the compiler reports errors in it
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

// reportMode returns how the program reports its status. It returns "" for exit.
func (e *ExecOf) reportMode() string {
	if e.Report == flow.ReportExit {
		return ""
	}
	return e.Report
}

// workerExecutor returns the executor for an Ork worker: the written one, or the only possible one.
func (e *ExecOf) workerExecutor() string {
	switch {
	case flow.ExecType(e.Type) != flow.ExecWorker || e.Executor != "":
		return e.Executor
	case e.Module != "" || e.Function != "" || e.Python != "" || strings.HasSuffix(e.File, ".py"):
		return "python"
	}
	return "process"
}

package flow

// Program is the program of a process or python node. It runs on the host of the carrier of its
// jobs, inside a folder that the operator of the host allows.
type Program struct {
	// Command is a shell command line, or a program (process).
	Command string   `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"` // process: program and arguments, without a shell
	// File is the file to start (process), the file with the function (python), or the library
	// (library).
	File     string `json:"file,omitempty"`
	Module   string `json:"module,omitempty"`   // python: used instead of a file
	Function string `json:"function,omitempty"` // python: main if absent
	Python   string `json:"python,omitempty"`   // python: the interpreter
	// Warm is the number of idle interpreters that fork themselves for attempts (python).
	Warm int `json:"warm,omitempty"`
	// Root is the working directory, inside the allowed folder.
	Root       string            `json:"root,omitempty"`
	Env        map[string]string `json:"env,omitempty"`         // added to the environment
	StdinMode  string            `json:"stdin_mode,omitempty"`  // none: stdin is empty
	OutputMode string            `json:"output_mode,omitempty"` // marker: only marked lines are output
	// LooseMarks means that a marked line that is not JSON is only logged, as in Ork. Otherwise
	// such a line fails the attempt.
	LooseMarks bool `json:"loose_marks,omitempty"`
	// GraceMS is the time between the request to stop and the kill in milliseconds; 0 for the
	// default.
	GraceMS int64 `json:"grace_ms,omitempty"`
	// Upstream also passes the outputs of dependencies, in ORK_UPSTREAM_JSON.
	Upstream bool   `json:"upstream_env,omitempty"`
	URL      string `json:"url,omitempty"`      // worker: address of the worker
	Executor string `json:"executor,omitempty"` // worker: executor that runs the program
	// Report is object_store if files, and not the exit code, report progress and result.
	Report string `json:"report,omitempty"`
	// Memory is the memory limit of each process in bytes; 0 if none. Containers have a limit of
	// their own.
	Memory int64 `json:"memory,omitempty"`
	// Secrets are secrets for the environment, by variable. The component that starts the program
	// reads the values.
	Secrets map[string]Secret `json:"secrets,omitempty"`
	// Container is the container in which the program runs.
	Container *Container `json:"container,omitempty"`
}

// Secret is a secret of a program. The program gets it as the value of a variable, or in a file
// that the variable names.
type Secret struct {
	Secret string `json:"secret"`         // name in the secret store
	File   string `json:"file,omitempty"` // path of the file; "" if the variable contains the value
}

// SecretForm is the pattern of secret names. No path matches it.
const SecretForm = `[A-Za-z0-9_][A-Za-z0-9._-]{0,127}`

// Values of stdin_mode and output_mode of a program.
const (
	StdinNone    = "none"
	StdinJSON    = "json" // for a container, which otherwise has an empty stdin
	OutputMarker = "marker"
)

// Values of report of a program. ObjectStore is also the service of external jobs whose workers are
// not started by this system.
const (
	ReportExit  = "exit"
	ObjectStore = "object_store"
)

// ByFiles reports whether the worker of the jobs reports its progress through files in an object
// store.
func (x *Exec) ByFiles() bool {
	return x.Type == ExecExternal && x.Service == ObjectStore || x.Program != nil && x.Program.Report == ObjectStore
}

// MaxWarm is the maximum number of idle interpreters of a node.
const MaxWarm = 16

// ProgramParam is the param that contains the program for a worker. Only the definition of a flow
// can set it to a program.
const ProgramParam = "exec"

// Executors lists the executors that an Ork worker supports.
var Executors = []string{"process", "python", "library"}

// ProgramLost is the error of an attempt whose program was lost with the member that had started
// it. The program is not started again automatically, because its progress is unknown. Only the
// node's retries start it again.
const ProgramLost = "engine restarted"

// ProgramTimeout is the error of an attempt whose program exceeded its timeout.
const ProgramTimeout = "execution timeout"

// allTexts returns all texts of the program.
func (p *Program) allTexts() []string {
	all := append([]string{p.Command, p.File, p.Module, p.Function, p.Python, p.Root, p.StdinMode,
		p.OutputMode, p.URL, p.Executor, p.Report}, p.Args...)
	for name, value := range p.Env {
		all = append(all, name, value)
	}
	for name, secret := range p.Secrets {
		all = append(all, name, secret.Secret, secret.File)
	}
	return append(all, p.Container.allTexts()...)
}

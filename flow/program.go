package flow

// Program is what a process or python node runs on the host of whoever carries out its jobs. It is
// started inside a folder that the host's operator allows.
type Program struct {
	Command    string            `json:"command,omitempty"`      // process: a shell line, or a program
	Args       []string          `json:"args,omitempty"`         // process: program and arguments, without a shell
	File       string            `json:"file,omitempty"`         // process: a file that is started; python: the file with the function; library: the library
	Module     string            `json:"module,omitempty"`       // python: instead of a file
	Function   string            `json:"function,omitempty"`     // python: main when absent
	Python     string            `json:"python,omitempty"`       // python: the interpreter
	Warm       int               `json:"warm,omitempty"`         // python: so many interpreters are kept that fork themselves for attempts
	Root       string            `json:"root,omitempty"`         // folder it runs in, inside the allowed one
	Env        map[string]string `json:"env,omitempty"`          // laid over its environment
	StdinMode  string            `json:"stdin_mode,omitempty"`   // none: nothing to read
	OutputMode string            `json:"output_mode,omitempty"`  // marker: only marked lines are output
	LooseMarks bool              `json:"loose_marks,omitempty"`  // a marked line that is no JSON is only logged, as in Ork; else it fails the attempt
	GraceMS    int64             `json:"grace_ms,omitempty"`     // between being asked to end and being killed; 0 = the default
	Upstream   bool              `json:"upstream_env,omitempty"` // it finds what its dependencies have given in ORK_UPSTREAM_JSON, too
	URL        string            `json:"url,omitempty"`          // worker: where it is
	Executor   string            `json:"executor,omitempty"`     // worker: as what it runs it
	Report     string            `json:"report,omitempty"`       // object_store: files say how it is and what came of it, not its exit
	Memory     int64             `json:"memory,omitempty"`       // bytes that each of its processes may have of its own; 0 = any. Those of containers say it themselves
	Secrets    map[string]Secret `json:"secrets,omitempty"`      // of its environment, by the variable: whoever starts it knows their values
	Container  *Container        `json:"container,omitempty"`    // container: what it runs in
}

// Secret is one that a program is given: as the value of its variable, or in a file that the
// variable names.
type Secret struct {
	Secret string `json:"secret"`         // what it is called where it is kept
	File   string `json:"file,omitempty"` // path of the file; "" = the variable has the value itself
}

// SecretForm is what names of secrets look like: none is a path.
const SecretForm = `[A-Za-z0-9_][A-Za-z0-9._-]{0,127}`

// Words of a program's stdin_mode and output_mode.
const (
	StdinNone    = "none"
	StdinJSON    = "json" // of a container, which else has nothing to read
	OutputMarker = "marker"
)

// Words of a program's report. ObjectStore is also the service of jobs outside whose workers nobody
// here starts.
const (
	ReportExit  = "exit"
	ObjectStore = "object_store"
)

// ByFiles says that whoever carries out the jobs tells by files in an object store how they are.
func (x *Exec) ByFiles() bool {
	return x.Type == ExecOutside && x.Service == ObjectStore || x.Program != nil && x.Program.Report == ObjectStore
}

// MaxWarm is how many interpreters a node may have kept.
const MaxWarm = 16

// ProgramParam is the param in which workers find the program that they are to start. Only the
// definition of a flow sets it to one.
const ProgramParam = "exec"

// Executors are what an Ork worker may be asked to run something as.
var Executors = []string{"process", "python", "library"}

// ProgramLost is what an attempt ends with whose program was lost with the member that had started
// it. It is not simply started once more: what it has done by then nobody knows, so that is for the
// node's retries to say.
const ProgramLost = "engine restarted"

// ProgramTimeout is what an attempt ends with whose program has taken longer than its timeout.
const ProgramTimeout = "execution timeout"

// allTexts are those that it is made of.
func (p *Program) allTexts() []string {
	all := append([]string{p.Command, p.File, p.Module, p.Function, p.Python, p.Root, p.StdinMode, p.OutputMode, p.URL, p.Executor, p.Report}, p.Args...)
	for name, value := range p.Env {
		all = append(all, name, value)
	}
	for name, secret := range p.Secrets {
		all = append(all, name, secret.Secret, secret.File)
	}
	return append(all, p.Container.allTexts()...)
}

package compile

import (
	"path"
	"regexp"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
)

// containerFields returns the fields that only apply to containers.
func containerFields(e *definition.ExecOf) []idleField {
	const why = "is for type: container"
	return []idleField{{"image", e.Image != "", why}, {"pull", e.Pull != "", why},
		{"network", e.Network != "", why}, {"user", e.User != "", why}, {"gpus", e.GPUs != "", why},
		{"mounts", e.Mounts != nil, why}, {"to_file", e.ToFile != "", why}, {"from_file", e.FromFile != "", why}}
}

// notForContainers returns the fields that do not apply to containers.
func notForContainers(e *definition.ExecOf) []idleField {
	const image = "is for programs without an image: a container is given a command"
	return []idleField{{"file", e.File != "", image}, {"module", e.Module != "", image},
		{"function", e.Function != "", image}, {"python", e.Python != "", image},
		{"warm", e.Warm != 0, image},
		{"url", e.URL != "", "is for type: worker"}, {"executor", e.Executor != "", "is for type: worker"},
		{"service", e.Service != "", "is for programs that workers start: it is members who have containers run"}}
}

// maxContainerGrace is the maximum time in milliseconds for a container to end, because the member
// waits for it.
const maxContainerGrace = 20_000

// checkContainer checks the image and the settings of a container.
func (c programChecker) checkContainer(e *definition.ExecOf, at *definition.Place) {
	if e.Image == "" || strings.ContainsAny(e.Image, " \t\r\n") {
		c.Errorf(at.Key("image"), "is the name of an image, such as alpine:3.20")
	}
	switch e.Pull {
	case "", flow.PullMissing, flow.PullAlways, flow.PullNever:
	default:
		c.Errorf(at.Key("pull"), "unknown word %.80q: write missing, always or never", e.Pull)
	}
	c.checkNetwork(e.Network, at.Key("network"))
	if strings.ContainsAny(e.User, " \t\r\n") {
		c.Errorf(at.Key("user"), "must be a name or a number, with a group behind a colon or without, is %.80q", e.User)
	}
	if _, err := e.GPUCount(); err != nil {
		c.Errorf(at.Key("gpus"), "%s", err)
	}
	if e.StdinMode == flow.StdinJSON && e.Command.IsZero() {
		c.Errorf(at.Key("command"), "is missing: what is to read the input (stdin_mode: json) has to be said")
	}
	for i, m := range e.Mounts {
		c.checkMount(m, at.Key("mounts").Index(i))
	}
	c.checkContainerPath(e.ToFile, at.Key("to_file"))
	c.checkContainerPath(e.FromFile, at.Key("from_file"))
	if e.Report == flow.ObjectStore && e.FromFile != "" {
		c.Errorf(at.Key("from_file"), "is for containers whose end says what came of them: with "+
			"report: object_store the output is output.json, beside the file that TASK_SPEC_PATH names")
	}
	if e.Grace.MS > maxContainerGrace {
		c.Errorf(at.Key("grace"), "is more than the 20s that a container may take to end")
	}
}

// checkResources checks the limits of a program. Only container hosts can limit processors.
func (c *checker) checkResources(e *definition.ExecOf, at *definition.Place) {
	if e.Resources == nil {
		return
	}
	if _, err := e.Resources.MilliCPU(); err != nil {
		c.Errorf(at.Key("cpu"), "%s", err)
	}
	if _, err := e.Resources.Bytes(); err != nil {
		c.Errorf(at.Key("memory"), "%s", err)
	}
	if t := flow.ExecType(e.Type); e.Resources.CPU != "" && t != flow.ExecContainer && t != flow.ExecWorker {
		mild := c.plan.Profile == flow.ProfileOrk || e.Service != ""
		c.reportByProfile(mild, at.Key("cpu"), "has no effect on a program without an image: "+
			"set type: container, or limit the member or worker itself")
	}
}

var networkName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]*$`)

func (c programChecker) checkNetwork(name string, at *definition.Place) {
	switch {
	case name == flow.NetworkHost:
		c.Warnf(at, "host shows the container the services that listen on its host alone: it "+
			"runs only where the operator allows that (--container-networks)")
	case name != "" && !networkName.MatchString(name):
		c.Errorf(at, "must be none, bridge or the name of a network, is %.80q", name)
	}
}

func (c programChecker) checkMount(m definition.Mount, at *definition.Place) {
	if m.From == "" {
		c.Errorf(at.Key("from"), "is missing: say which folder or file inside --script-dir the container sees")
	}
	if m.To == "" {
		c.Errorf(at.Key("to"), "is missing: say where the container sees it, such as /data")
		return
	}
	c.checkContainerPath(m.To, at.Key("to"))
}

// checkContainerPath checks a path inside a container.
func (c programChecker) checkContainerPath(name string, at *definition.Place) {
	if name != "" && (!path.IsAbs(name) || path.Clean(name) == "/" || strings.ContainsAny(name, ":\x00")) {
		c.Errorf(at, "must be a path in the container that begins with /, such as /data/in.json, is %.80q", name)
	}
}

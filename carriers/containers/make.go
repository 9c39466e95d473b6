package containers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/troupe-engine/troupe/carriers"
	"github.com/troupe-engine/troupe/carriers/programs"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/child"
	"github.com/troupe-engine/troupe/internal/program"
	"github.com/troupe-engine/troupe/internal/redact"
)

// These are the labels of containers that Troupe starts.
const (
	labelJob    = "troupe.job"
	labelStore  = "troupe.store"
	labelMember = "troupe.member" // name of the member that started the container
)

// inputFile is the path of the input in a container. It is used if the input is too large for a
// variable, or is read as stdin.
const inputFile = "/ork/input.json"

const defaultGrace = 10_000

// containerName returns the name of a job's container. The name is equal on every member, so the
// container host refuses a second container.
func (s *Service) containerName(job string) string {
	sum := sha256.Sum256([]byte(s.opts.Store + "\n" + job))
	return "troupe-" + hex.EncodeToString(sum[:16])
}

// containerPlan describes a container to create.
type containerPlan struct {
	client.ContainerCreateOptions
	pull   string
	files  []containerFile // files to write before the start
	note   trackerNote
	hide   *redact.Redactor              // nil if the program has no secrets
	mounts func() ([]mount.Mount, error) // resolves the mounts again
}

// trackerNote is the data about a container for its tracker.
type trackerNote struct {
	FromFile string `json:"from_file,omitempty"`
	Marked   bool   `json:"marked,omitempty"` // only marked lines are output
	// a marked line without JSON is only logged
	Loose   bool                   `json:"loose,omitempty"`
	Memory  int64                  `json:"memory,omitempty"`
	GraceMS int64                  `json:"grace_ms,omitempty"`
	Secrets map[string]flow.Secret `json:"secrets,omitempty"` // references to the secrets
	// files with the result; nil if the result is the exit and the output
	Files *reportFiles `json:"files,omitempty"`
}

// planContainer returns the container for a job. An error with a kind is permanent.
func (s *Service) planContainer(ctx context.Context, job *flow.Job) (*containerPlan, error) {
	p := job.Exec.Program
	if p == nil || p.Container == nil {
		return nil, flow.Errorf(flow.Invalid, "the job names no image")
	}
	if !s.isNetworkAllowed(p.Container.Network) {
		return nil, flow.Errorf(flow.Denied,
			"the network %s is not allowed for containers; the operator of this server can name "+
				"it with --container-networks", p.Container.Network)
	}
	mounts, err := s.resolveMounts(p)
	if err != nil {
		return nil, err
	}
	with, files, hide, err := s.withSecrets(p)
	if err != nil {
		return nil, err
	}
	of := &containerPlan{pull: p.Container.Pull, note: noteOf(p), files: files, hide: hide,
		mounts: func() ([]mount.Mount, error) { return s.resolveMounts(p) }}
	of.Name = s.containerName(job.ID())
	s.describeContainer(of, job, with)
	of.HostConfig.Mounts = mounts
	if p.Report == flow.ObjectStore {
		return of, s.addFileReporting(ctx, of, job)
	}
	return of, nil
}

// isNetworkAllowed reports whether a container may use a network. The host's own network must be
// allowed by the operator.
func (s *Service) isNetworkAllowed(network string) bool {
	switch {
	case network == "" || network == flow.NetworkNone:
		return true
	case len(s.opts.Networks) == 0:
		return network != flow.NetworkHost
	}
	return slices.Contains(s.opts.Networks, network)
}

// noteOf returns the tracker's data for the container of a program.
func noteOf(p *flow.Program) trackerNote {
	n := trackerNote{FromFile: p.Container.FromFile, Marked: p.OutputMode == flow.OutputMarker,
		Loose: p.LooseMarks, Memory: p.Container.Memory, GraceMS: p.GraceMS, Secrets: p.Secrets}
	if n.GraceMS == 0 {
		n.GraceMS = defaultGrace
	}
	return n
}

// graceSeconds returns the grace period in seconds, rounded up.
func (n *trackerNote) graceSeconds() int { return int((n.GraceMS + 999) / 1000) }

// describeContainer fills in the configuration of a program's container, and its input files.
func (s *Service) describeContainer(of *containerPlan, job *flow.Job, p *flow.Program) {
	c, input, seconds := p.Container, program.Input(carriers.Input(job)), of.note.graceSeconds()
	facts := program.Job{Type: job.Exec.Type, Program: p, Facts: programs.Facts(job)}
	of.Config = &container.Config{Image: c.Image, User: c.User,
		Env: envList(facts.Variables(input, inputFile)), StopSignal: "SIGTERM", StopTimeout: &seconds,
		Labels: map[string]string{labelJob: job.ID(), labelStore: s.opts.Store, labelMember: s.opts.Member}}
	of.Config.Entrypoint, of.Config.Cmd = commandOf(p)
	of.HostConfig = &container.HostConfig{NetworkMode: container.NetworkMode(c.Network),
		Resources: container.Resources{NanoCPUs: c.CPUs * 1e6, Memory: c.Memory, MemorySwap: c.Memory}}
	if c.GPUs != 0 {
		of.HostConfig.DeviceRequests = []container.DeviceRequest{{Count: c.GPUs, Capabilities: [][]string{{"gpu"}}}}
	}
	if program.Large(input) || p.StdinMode == flow.StdinJSON {
		of.files = append(of.files, containerFile{inputFile, input})
	}
	if c.ToFile != "" {
		of.files = append(of.files, containerFile{c.ToFile, input})
	}
}

// commandOf returns the entrypoint and command. A list of arguments goes to the image's entrypoint,
// and a line to its shell. For a program with stdin, the shell redirects a file, because a file can
// be read completely even if the member dies.
func commandOf(p *flow.Program) (entrypoint, cmd []string) {
	shell := []string{"/bin/sh", "-c"}
	switch reads := p.StdinMode == flow.StdinJSON; {
	case reads && p.Command != "":
		return shell, []string{"exec < " + inputFile + "\n" + p.Command}
	case reads:
		return append(shell, `exec "$@" < `+inputFile, "sh"), p.Args
	case p.Command != "":
		return shell, []string{p.Command}
	}
	return nil, p.Args
}

func envList(vars map[string]string) []string {
	list := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		list = append(list, name+"="+vars[name])
	}
	return list
}

// resolveMounts returns the current mounts of a container. It resolves links, so that no mount
// leads out of the folder.
func (s *Service) resolveMounts(p *flow.Program) ([]mount.Mount, error) {
	var list []mount.Mount
	for _, m := range p.Container.Mounts {
		if s.opts.Dir == "" {
			return nil, flow.Errorf(flow.Denied,
				"the mount of %q needs a folder that it is in; the operator of this server can "+
					"name one with --script-dir", m.From)
		}
		root, err := child.Inside(s.opts.Dir, p.Root)
		from := ""
		if err == nil {
			from, err = child.Inside(s.opts.Dir, joinBelow(root, m.From))
		}
		switch {
		case errors.Is(err, child.ErrOutside):
			return nil, flow.Errorf(flow.Denied, "the mount of %q is outside of the folder that programs may run in (--script-dir)", m.From)
		case err != nil:
			return nil, fmt.Errorf("the mount of %q: %w", m.From, err)
		}
		list = append(list, mount.Mount{Type: mount.TypeBind, Source: from, Target: m.To, ReadOnly: m.ReadOnly})
	}
	return list, nil
}

func joinBelow(root, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(root, name)
}

// Data was encoded by encodeData
func (n *trackerNote) decodeData(x flow.External) { _ = json.Unmarshal(x.Data, n) }

func (n *trackerNote) encodeData() json.RawMessage {
	b, _ := json.Marshal(n) // all fields can be encoded
	return b
}

// heardAs returns a program with the same output rules as the container's.
func (n *trackerNote) heardAs() *flow.Program {
	p := &flow.Program{LooseMarks: n.Loose}
	if n.Marked || n.FromFile != "" {
		p.OutputMode = flow.OutputMarker
	}
	return p
}

package definition

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// Mount makes a folder or file of the member's host visible in a container.
type Mount struct {
	From     string `json:"from,omitempty"` // path of the source below root
	To       string `json:"to,omitempty"`   // path in the container, such as /data
	ReadOnly bool   `json:"ro,omitempty"`   // the container cannot change it
}

// Resources are the limits of a program.
type Resources struct {
	CPU    Plain `json:"cpu,omitempty"`    // number of processors, such as 2, 0.5 or 500m
	Memory Plain `json:"memory,omitempty"` // amount such as 512Mi or 4Gi, or bytes
}

// toContainer returns the container of the object, or nil if the object has another type.
func (e *ExecOf) toContainer() *flow.Container {
	if flow.ExecType(e.Type) != flow.ExecContainer {
		return nil
	}
	c := &flow.Container{Image: e.Image, Pull: e.Pull, Network: e.Network, User: e.User, ToFile: e.ToFile, FromFile: e.FromFile}
	c.GPUs, _ = e.GPUCount()
	c.CPUs, _ = e.Resources.MilliCPU() // the compiler reports errors in these fields
	c.Memory, _ = e.Resources.Bytes()
	for _, m := range e.Mounts {
		c.Mounts = append(c.Mounts, flow.Mount{From: m.From, To: m.To, ReadOnly: m.ReadOnly})
	}
	return c
}

// GPUCount returns the number of graphics processors; 0 if not set.
func (e *ExecOf) GPUCount() (int, error) {
	const most = 1000
	switch e.GPUs {
	case "":
		return 0, nil
	case "all":
		return flow.AllGPUs, nil
	}
	n, err := strconv.Atoi(string(e.GPUs))
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("must be all, or how many, such as 1, is %.40q", string(e.GPUs))
	}
	return n, nil
}

// MilliCPU returns the processor limit in thousandths; 0 if not set.
func (r *Resources) MilliCPU() (int64, error) {
	if r == nil || r.CPU == "" {
		return 0, nil
	}
	text, factor := string(r.CPU), 1000.0
	if number, milli := strings.CutSuffix(text, "m"); milli {
		text, factor = number, 1
	}
	n, err := strconv.ParseFloat(text, 64)
	if n *= factor; err != nil || !(n >= 1) || n > 1e9 {
		return 0, fmt.Errorf("must be processors, such as 2, 0.5 or 500m, is %.40q", string(r.CPU))
	}
	return int64(math.Round(n)), nil
}

// memoryUnits lists the units of memory. A longer name comes before its suffixes.
var memoryUnits = []struct {
	name  string
	bytes float64
}{
	{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"Ti", 1 << 40}, {"k", 1e3}, {"K", 1e3},
	{"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"", 1},
}

// Bytes returns the memory limit; 0 if not set.
func (r *Resources) Bytes() (int64, error) {
	if r == nil || r.Memory == "" {
		return 0, nil
	}
	for _, unit := range memoryUnits {
		number, fits := strings.CutSuffix(string(r.Memory), unit.name)
		if !fits {
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		if n *= unit.bytes; err != nil || !(n >= 1) || n > 1<<50 {
			break
		}
		return int64(n), nil
	}
	return 0, fmt.Errorf("must be an amount of memory, such as 512Mi or 4Gi, is %.40q", string(r.Memory))
}

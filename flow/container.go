package flow

import (
	"strconv"
	"unsafe"
)

// Container describes the container of a program that has its own image. It runs on a container
// host that the member's operator allows.
type Container struct {
	Image string `json:"image"`
	// Pull says when to fetch the image; "" means when it is missing.
	Pull string `json:"pull,omitempty"`
	// Network is none, bridge, or the name of a network of the host; "" means the host's default.
	Network  string  `json:"network,omitempty"`
	User     string  `json:"user,omitempty"`      // "" for the user of the image
	GPUs     int     `json:"gpus,omitempty"`      // number of graphics processors; AllGPUs for all
	Mounts   []Mount `json:"mounts,omitempty"`    // folders and files of the member's host
	CPUs     int64   `json:"milli_cpu,omitempty"` // limit in thousandths of a processor; 0 if none
	Memory   int64   `json:"memory,omitempty"`    // limit in bytes; 0 if none
	ToFile   string  `json:"to_file,omitempty"`   // file that also contains the input
	FromFile string  `json:"from_file,omitempty"` // file that contains the output
}

// Mount makes a folder or file of the member's host visible in a container.
type Mount struct {
	From     string `json:"from"` // path inside the folder in which programs may run
	To       string `json:"to"`
	ReadOnly bool   `json:"ro,omitempty"`
}

// Values of Container.Pull, and networks that every host has.
const (
	PullMissing = "missing"
	PullAlways  = "always"
	PullNever   = "never"

	NetworkNone   = "none"
	NetworkBridge = "bridge"
	NetworkHost   = "host" // allowed only if the operator permits it
)

// AllGPUs requests all graphics processors of the host.
const AllGPUs = -1

// MemoryText formats a number of bytes in the usual notation, such as 512Mi.
func MemoryText(bytes int64) string {
	units := []string{"", "Ki", "Mi", "Gi", "Ti"}
	for len(units) > 1 && bytes > 0 && bytes%1024 == 0 {
		bytes, units = bytes/1024, units[1:]
	}
	return strconv.FormatInt(bytes, 10) + units[0]
}

func (c *Container) allTexts() []string {
	if c == nil {
		return nil
	}
	all := []string{c.Image, c.Pull, c.Network, c.User, c.ToFile, c.FromFile}
	for _, m := range c.Mounts {
		all = append(all, m.From, m.To)
	}
	return all
}

// memorySize returns the memory that the container takes in addition to its texts.
func (c *Container) memorySize() int {
	if c == nil {
		return 0
	}
	return int(unsafe.Sizeof(*c)) + len(c.Mounts)*int(unsafe.Sizeof(Mount{}))
}

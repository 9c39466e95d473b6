package flow

import (
	"strconv"
	"unsafe"
)

// Container is what a program runs in that has an image of its own, on a container host that the
// member's operator allows.
type Container struct {
	Image    string  `json:"image"`
	Pull     string  `json:"pull,omitempty"`      // when the image is fetched; "" = when it is missing
	Network  string  `json:"network,omitempty"`   // none, bridge, or the name of one that the host has; "" = the host's default
	User     string  `json:"user,omitempty"`      // "" = the image's
	GPUs     int     `json:"gpus,omitempty"`      // graphics processors of its host that it has
	Mounts   []Mount `json:"mounts,omitempty"`    // folders and files of the member's host
	CPUs     int64   `json:"milli_cpu,omitempty"` // thousandths of a processor that it may use; 0 = any
	Memory   int64   `json:"memory,omitempty"`    // bytes that it may use; 0 = any
	ToFile   string  `json:"to_file,omitempty"`   // a file that its input is in, too
	FromFile string  `json:"from_file,omitempty"` // the file that has its output
}

// Mount shows a container something of the member's host.
type Mount struct {
	From     string `json:"from"` // inside the folder that programs may run in
	To       string `json:"to"`
	ReadOnly bool   `json:"ro,omitempty"`
}

// Words of a container's pull, and networks that every host has.
const (
	PullMissing = "missing"
	PullAlways  = "always"
	PullNever   = "never"

	NetworkNone   = "none"
	NetworkBridge = "bridge"
	NetworkHost   = "host" // which a container is given only where the operator says so
)

// AllGPUs is as many graphics processors as there are.
const AllGPUs = -1

// MemoryText is a number of bytes as people write it, such as 512Mi.
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

// memorySize is what it takes beside its texts.
func (c *Container) memorySize() int {
	if c == nil {
		return 0
	}
	return int(unsafe.Sizeof(*c)) + len(c.Mounts)*int(unsafe.Sizeof(Mount{}))
}

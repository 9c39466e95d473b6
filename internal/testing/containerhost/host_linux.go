package containerhost

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/troupe-engine/troupe/internal/testing/process"
)

// Image is the name of the image for containers; it holds busybox.
const Image = "localhost/troupe-checks"

// Host is a private container host.
type Host struct {
	URL     string // address of its API
	dir     string
	service *process.Process
}

// Start starts a host in a folder, makes the image, and verifies that a container can run.
func Start(dir string) (*Host, error) {
	h := &Host{dir: dir, URL: "unix://" + filepath.Join(dir, "podman.sock")}
	for name, text := range map[string]string{"containers.conf": containersConf(),
		"storage.conf": storageConf(dir), "policy.json": `{"default":[{"type":"insecureAcceptAnything"}]}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	if err := h.makeImage(); err != nil {
		return nil, err
	}
	if out, err := h.Podman("run", "--rm", "--network", "none", Image, "true").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("this machine runs no containers, as user %d: podman (%w) says: %s", os.Getuid(), err, out)
	}
	return h, h.startService()
}

// containersConf returns a configuration for small virtual machines without systemd: limits that
// every user may set, and no cgroups managed by systemd.
func containersConf() string {
	return fmt.Sprintf("[containers]\ndefault_ulimits = [\"nofile=%d:%[1]d\", \"nproc=%d:%[2]d\"]\n"+
		"[engine]\nruntime = \"runc\"\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\n",
		limitFor(syscall.RLIMIT_NOFILE, 20_000), limitFor(rlimitNproc, 10_000))
}

const rlimitNproc = 6 // package syscall has no such constant

// limitFor returns the wanted limit of a resource, or this process's own limit if that is lower.
func limitFor(resource int, wanted uint64) uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(resource, &limit) != nil {
		return wanted
	}
	return min(wanted, limit.Max)
}

func storageConf(dir string) string {
	return fmt.Sprintf("[storage]\ndriver = \"vfs\"\ngraphroot = %q\nrunroot = %q\n",
		filepath.Join(dir, "graph"), filepath.Join(dir, "run"))
}

// Podman returns a podman command for the host.
func (h *Host) Podman(args ...string) *exec.Cmd {
	cmd := exec.Command("podman", args...)
	cmd.Env = append(os.Environ(), "CONTAINERS_CONF="+filepath.Join(h.dir, "containers.conf"),
		"CONTAINERS_STORAGE_CONF="+filepath.Join(h.dir, "storage.conf"),
		"XDG_RUNTIME_DIR="+h.dir, "TMPDIR="+h.dir)
	return cmd
}

// makeImage makes the image from this machine's busybox.
func (h *Host) makeImage() error {
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return errors.New("there is no busybox: install busybox-static")
	}
	root := filepath.Join(h.dir, "root")
	if err := os.MkdirAll(filepath.Join(root, "bin"), 0o755); err != nil {
		return err
	}
	content, err := os.ReadFile(busybox)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, "bin", "busybox"), content, 0o755); err != nil {
		return err
	}
	if err := linkApplets(busybox, filepath.Join(root, "bin")); err != nil {
		return err
	}
	packed := filepath.Join(h.dir, "root.tar")
	if out, err := exec.Command("tar", "-C", root, "--owner=0", "--group=0", "-cf", packed, ".").CombinedOutput(); err != nil {
		return fmt.Errorf("tar: %w: %s", err, out)
	}
	if out, err := h.Podman("import", packed, Image).CombinedOutput(); err != nil {
		return fmt.Errorf("podman import: %w: %s", err, out)
	}
	return nil
}

// linkApplets links the names of all busybox applets in a folder.
func linkApplets(busybox, dir string) error {
	applets, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		return fmt.Errorf("busybox --list: %w", err)
	}
	for applet := range strings.FieldsSeq(string(applets)) {
		if applet == "busybox" {
			continue
		}
		if err := os.Symlink("busybox", filepath.Join(dir, applet)); err != nil {
			return err
		}
	}
	return nil
}

// startService starts the API service of the host and waits until it answers.
func (h *Host) startService() (err error) {
	if h.service, err = process.Start(h.dir, "podman", h.Podman("system", "service", "--time=0", h.URL)); err != nil {
		return err
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if conn, err := net.Dial("unix", strings.TrimPrefix(h.URL, "unix://")); err == nil {
			return conn.Close()
		}
	}
	return errors.New("podman does not answer: " + h.service.Said())
}

// Restart restarts the API service. Containers keep running.
func (h *Host) Restart() error {
	h.service.Kill()
	return h.startService()
}

// Stop removes all containers and stops the host.
func (h *Host) Stop() {
	_ = h.Podman("rm", "--all", "--force", "--time", "0").Run()
	h.service.Kill()
	if os.Getuid() != 0 {
		_ = h.Podman("system", "migrate").Run() // ends the process that holds the user namespace
	}
}

// LimitsMemory reports whether the host can limit memory. With cgroups version 1 only root can.
func (h *Host) LimitsMemory() bool {
	out, err := h.Podman("info", "--format", "{{.Host.CgroupControllers}}").Output()
	return err == nil && strings.Contains(string(out), "memory")
}

//go:build containers && linux

package containers

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/troupe-engine/troupe/internal/pgtest"
	"github.com/troupe-engine/troupe/internal/process"
)

var (
	binary string // the command that is tested
	podman *host
)

func TestMain(m *testing.M) { os.Exit(prepared(m)) }

// prepared runs the tests with a binary and a container host.
func prepared(m *testing.M) int {
	dir, err := os.MkdirTemp("", "troupe-containers-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = build(dir)
	}
	if err == nil {
		podman, err = newHost(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer podman.stop()
	return pgtest.Main(m)
}

func build(dir string) error {
	binary = filepath.Join(dir, "troupe")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/troupe").CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// image is what the containers of the checks are made of.
const image = "localhost/troupe-checks"

// host is a container host of our own.
type host struct {
	dir     string
	url     string
	service *process.Process
}

// newHost starts one, with an image, and sees whether it can run anything.
func newHost(dir string) (*host, error) {
	h := &host{dir: dir, url: "unix://" + filepath.Join(dir, "podman.sock")}
	for name, text := range map[string]string{"containers.conf": containersConf(), "storage.conf": storageConf(dir), "policy.json": `{"default":[{"type":"insecureAcceptAnything"}]}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	if err := h.makeImage(); err != nil {
		return nil, err
	}
	if out, err := h.podman("run", "--rm", "--network", "none", image, "true").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("this machine runs no containers, as user %d: podman (%w) says: %s", os.Getuid(), err, out)
	}
	return h, h.serve()
}

// containersConf has podman work in small virtual machines, and without systemd: limits that everybody may have, and no cgroups of its.
func containersConf() string {
	return fmt.Sprintf("[containers]\ndefault_ulimits = [\"nofile=%d:%[1]d\", \"nproc=%d:%[2]d\"]\n"+
		"[engine]\nruntime = \"runc\"\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\n", most(syscall.RLIMIT_NOFILE, 20_000), most(rlimitNproc, 10_000))
}

const rlimitNproc = 6 // which package syscall has no name for

// most is as much as is wanted of a resource, or as this process may have.
func most(resource int, wanted uint64) uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(resource, &limit) != nil {
		return wanted
	}
	return min(wanted, limit.Max)
}

func storageConf(dir string) string {
	return fmt.Sprintf("[storage]\ndriver = \"vfs\"\ngraphroot = %q\nrunroot = %q\n", filepath.Join(dir, "graph"), filepath.Join(dir, "run"))
}

func (h *host) podman(args ...string) *exec.Cmd {
	cmd := exec.Command("podman", args...)
	cmd.Env = append(os.Environ(), "CONTAINERS_CONF="+filepath.Join(h.dir, "containers.conf"), "CONTAINERS_STORAGE_CONF="+filepath.Join(h.dir, "storage.conf"),
		"XDG_RUNTIME_DIR="+h.dir, "TMPDIR="+h.dir)
	return cmd
}

// makeImage makes an image of a busybox, which comes from this machine.
func (h *host) makeImage() error {
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
	applets, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		return fmt.Errorf("busybox --list: %w", err)
	}
	for applet := range strings.FieldsSeq(string(applets)) {
		if applet != "busybox" {
			if err := os.Symlink("busybox", filepath.Join(root, "bin", applet)); err != nil {
				return err
			}
		}
	}
	packed := filepath.Join(h.dir, "root.tar")
	if out, err := exec.Command("tar", "-C", root, "--owner=0", "--group=0", "-cf", packed, ".").CombinedOutput(); err != nil {
		return fmt.Errorf("tar: %w: %s", err, out)
	}
	if out, err := h.podman("import", packed, image).CombinedOutput(); err != nil {
		return fmt.Errorf("podman import: %w: %s", err, out)
	}
	return nil
}

// serve has the host answer.
func (h *host) serve() (err error) {
	if h.service, err = process.Start(h.dir, "podman", h.podman("system", "service", "--time=0", h.url)); err != nil {
		return err
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if conn, err := net.Dial("unix", strings.TrimPrefix(h.url, "unix://")); err == nil {
			return conn.Close()
		}
	}
	return errors.New("podman does not answer: " + h.service.Said())
}

// stop removes all containers of the host, and ends it.
func (h *host) stop() {
	_ = h.podman("rm", "--all", "--force", "--time", "0").Run()
	h.service.Kill()
	if os.Getuid() != 0 {
		_ = h.podman("system", "migrate").Run() // it ends the process that holds the user's namespace
	}
}

// limitsMemory says whether the host can: with cgroups of version 1 only root may.
func (h *host) limitsMemory() bool {
	out, err := h.podman("info", "--format", "{{.Host.CgroupControllers}}").Output()
	return err == nil && strings.Contains(string(out), "memory")
}

// container is one as podman lists it.
type container struct {
	ID     string `json:"Id"`
	Names  []string
	Labels map[string]string
	State  string
}

// ours are the containers of some task's jobs, whatever has become of them.
func (h *host) ours(t *testing.T, task string) (found []container) {
	t.Helper()
	out, err := h.podman("ps", "--all", "--format", "json").Output()
	if err != nil {
		t.Fatalf("podman ps: %v", err)
	}
	var all []container
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatalf("podman ps: %v: %s", err, out)
	}
	for _, c := range all {
		if strings.HasPrefix(c.Labels["troupe.job"], task+".") {
			found = append(found, c)
		}
	}
	return found
}

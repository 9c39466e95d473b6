//go:build containers && linux

package containers

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-engine/troupe/internal/testing/built"
	"github.com/troupe-engine/troupe/internal/testing/containerhost"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

var (
	binary string // path of the tested command
	podman *containerhost.Host
)

const image = containerhost.Image

func TestMain(m *testing.M) { os.Exit(prepared(m)) }

// prepared runs the tests with a binary and a container host.
func prepared(m *testing.M) int {
	dir, err := os.MkdirTemp("", "troupe-containers-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = build(dir)
	}
	if err == nil {
		podman, err = containerhost.Start(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer podman.Stop()
	return pgtest.Main(m)
}

func build(dir string) error {
	binary = filepath.Join(dir, "troupe")
	return built.Program(binary, "../../../cmd/troupe")
}

// container is a container in podman's list.
type container struct {
	ID     string `json:"Id"`
	Names  []string
	Labels map[string]string
	State  string
}

// ours returns the containers of a task's jobs, in any state.
func ours(t *testing.T, task string) (found []container) {
	t.Helper()
	out, err := podman.Podman("ps", "--all", "--format", "json").Output()
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

package errands

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/internal/testing/containerhost"
)

const (
	// hostVariable is the variable with the address of the members' container host. If it is not
	// set, no errand uses containers.
	hostVariable = "TROUPE_ERRANDS_CONTAINER_HOST"
	// wantedVariable is the variable that requests a container host.
	wantedVariable = "TROUPE_ERRANDS_CONTAINERS"
	// containersFolder is the part of the working folder that containers see.
	containersFolder = "boxes"
)

func containerHost() string { return os.Getenv(hostVariable) }

// WithContainers runs tests with a container host if the environment requests containers. Child
// processes inherit the address of the host.
func WithContainers(run func() int) (code int, err error) {
	if os.Getenv(wantedVariable) == "" || containerHost() != "" {
		return run(), nil
	}
	dir, err := os.MkdirTemp("", "troupe-containers-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	host, err := containerhost.Start(dir)
	if err != nil {
		return 1, err
	}
	defer host.Stop()
	if err := os.Setenv(hostVariable, host.URL); err != nil {
		return 1, err
	}
	return run(), nil
}

// noContainers waits until the container host has no container that uses the folder.
func noContainers(ctx context.Context, dir string) error {
	if containerHost() == "" {
		return nil
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	socket := strings.TrimPrefix(containerHost(), "unix://")
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Clean(socket))
	}}
	defer transport.CloseIdleConnections()
	for {
		left, err := containersOf(ctx, &http.Client{Transport: transport}, dir)
		if err != nil || len(left) == 0 {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("containers are left: %v", left)
		}
	}
}

// containersOf returns the jobs of containers that use a folder.
func containersOf(ctx context.Context, c *http.Client, dir string) (jobs []string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://host/v1.41/containers/json?all=true", nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var all []struct {
		Labels map[string]string
		Mounts []struct{ Source string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&all); err != nil {
		return nil, err
	}
	for _, one := range all {
		if len(one.Mounts) > 0 && one.Mounts[0].Source == dir {
			jobs = append(jobs, one.Labels["troupe.job"])
		}
	}
	return jobs, nil
}

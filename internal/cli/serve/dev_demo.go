package serve

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/cli/console"
	"github.com/troupe-engine/troupe/worker/demo"
)

// demoServices returns the names of all services of the demo's workers.
func demoServices() []string {
	return slices.Concat(demo.PushServices(), demo.PullServices())
}

// standIns reports which demo services are replaced by the user's own workers. The member chooses
// the worker of a job (troupe.Config.StandbyWorkers); this type only reports the choice.
type standIns struct {
	server   *client.Client
	out      io.Writer
	replaced map[string]string // by service, the worker that replaces the demo's worker
}

// standInLook is the interval at which the workers are read.
const standInLook = 500 * time.Millisecond

func (s *standIns) watchWorkers(ctx context.Context) {
	ticker := time.NewTicker(standInLook)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		// on an error the member ends, or reports it itself
		if known, err := s.server.Workers(ctx); err == nil {
			s.reportChanges(known)
		}
	}
}

// reportChanges reports changes among the online workers.
func (s *standIns) reportChanges(known []wire.Worker) {
	own := map[string]string{}
	for _, w := range known {
		if w.ID == demoPush || w.ID == demoPull || w.Type == "local" || w.State != "online" {
			continue
		}
		for _, service := range w.Services {
			if slices.Contains(demoServices(), service) {
				own[service] = w.ID
			}
		}
	}
	// services by replacing worker; services without one
	came, went := map[string][]string{}, []string{}
	for service, id := range own {
		if s.replaced[service] == "" {
			came[id] = append(came[id], service)
		}
	}
	for service := range s.replaced {
		if own[service] == "" {
			went = append(went, service)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(came)) {
		slices.Sort(came[id])
		fmt.Fprintf(s.out, "worker %s replaces the demo services %s\n",
			console.SanitizeText(id), console.SanitizeText(strings.Join(came[id], ", ")))
	}
	if len(went) > 0 {
		slices.Sort(went)
		fmt.Fprintf(s.out, "no worker is left for %s: the demo services of the same name "+
			"are used again\n", console.SanitizeText(strings.Join(went, ", ")))
	}
	s.replaced = own
}

package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/internal/cli/console"
	"github.com/troupe-engine/troupe/internal/cli/flows"
	"github.com/troupe-engine/troupe/worker"
	"github.com/troupe-engine/troupe/worker/demo"
)

// DevCommand runs a member for development.
type DevCommand struct {
	memberFlags
	NoDemo bool `help:"Do not run the demo services, which the example flows need."`
	flows.StrictFlag
	Dir string `arg:"" optional:"" type:"path" help:"Folder with definitions (*.yaml, *.yml, *.json), published now and on every change (./flows)."`
}

// Help describes the differences from serve.
func (DevCommand) Help() string {
	return fmt.Sprintf(
		`Like serve, but with the store in .troupe/dev.db, with scripts and with deferred jobs on this host or with mock:// URLs.
Demo workers offer the services of the examples: %s (push); %s (pull).
Your workers replace demo services of the same name. --no-demo disables all of them.
Each file becomes the flow with the slug of its file name.`, strings.Join(demo.PushServices(), ", "), strings.Join(demo.PullServices(), ", "))
}

// Run runs the member until ctx ends.
func (c *DevCommand) Run(ctx context.Context, a *console.App) error {
	if err := c.chooseDefaults(); err != nil {
		return err
	}
	cfg, err := c.buildConfig(a)
	if err != nil {
		return err
	}
	if err := loadEnvFile(&cfg, c.Dir); err != nil {
		return err
	}
	cfg.AllowScripts, cfg.AllowMock = true, true
	cfg.StandbyWorkers = []string{demoPush, demoPull}
	cfg.PollNetworks = append(cfg.PollNetworks, netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"))
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	// The member outlives its workers, so that they can finish their work and deregister.
	staying, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	starting := context.AfterFunc(ctx, leave)
	m, err := startMember(staying, cfg)
	if err != nil {
		return err
	}
	server, err := client.New(m.url, client.Options{Token: firstOrEmpty(cfg.Tokens)})
	if err != nil {
		leave()
		return errors.Join(err, m.waitForEnd())
	}
	starting()
	store := troupe.StoreName(cfg.Store)
	c.PrintNotice(a, fmt.Sprintf("Troupe serves %s from %s; pages: %s; definitions in "+
		"%s are published on every change", m.url, store, m.uiURL(), c.Dir),
		map[string]string{"url": m.url, "store": store, "pages": m.uiURL(), "definitions": c.Dir})
	out := &sharedWriter{w: a.Stdout, json: c.LogFormat == "json"}
	var all sync.WaitGroup
	if !c.NoDemo {
		fmt.Fprintf(out, "demo services: %s; your workers replace services of the "+
			"same name, and --no-demo disables them all\n", strings.Join(demoServices(), ", "))
		for _, w := range demoWorkers(worker.Config{Server: m.url, Token: firstOrEmpty(cfg.Tokens), Logger: cfg.Logger}) {
			all.Go(func() {
				if err := w.Run(ctx); err != nil {
					fmt.Fprintln(out, err)
				}
			})
		}
		all.Go(func() { (&standIns{server: server, out: out}).watchWorkers(ctx) })
	}
	all.Go(func() {
		(&flows.Folder{Dir: c.Dir, Out: out, Publish: c.PublishTo(server), StrictFlag: c.StrictFlag}).WatchChanges(ctx)
	})
	ended := make(chan error, 1)
	go func() { // ends with the member
		ended <- m.waitForEnd()
		stop() // if the member ended by itself, everything else stops, too
	}()
	all.Wait()
	leave()
	return <-ended
}

// chooseDefaults sets the default store and folder.
func (c *DevCommand) chooseDefaults() error {
	switch _, err := os.Stat(cmp.Or(c.Dir, ".")); {
	case errors.Is(err, os.ErrNotExist):
		return console.NewUsageError("folder %s does not exist", c.Dir)
	case err != nil:
		return err
	}
	c.Dir = cmp.Or(c.Dir, "flows")
	if c.Store != "" || os.Getenv("SCHEDULER_DB") != "" {
		return nil
	}
	if err := os.MkdirAll(".troupe", 0o700); err != nil {
		return fmt.Errorf("making the store's folder: %w", err)
	}
	c.Store = "sqlite:" + filepath.Join(".troupe", "dev.db")
	return os.WriteFile(filepath.Join(".troupe", ".gitignore"), []byte("*\n"), 0o600)
}

// demoWorkers returns a push and a pull worker of the demo services. Their ids are constant, so
// that restarts do not leave many offline workers.
func demoWorkers(cfg worker.Config) []*worker.Worker {
	push, pull := cfg, cfg
	push.ID, push.Push, push.URL = demoPush, true, "http://127.0.0.1:0"
	pull.ID, pull.Pull = demoPull, true
	workers := []*worker.Worker{worker.New(push), worker.New(pull)}
	demo.Push(workers[0])
	demo.Pull(workers[1], demo.Options{})
	return workers
}

func firstOrEmpty(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// sharedWriter lets several goroutines write whole lines to one writer.
type sharedWriter struct {
	mu   sync.Mutex
	w    io.Writer
	json bool // whether each line is written as a JSON value
}

func (s *sharedWriter) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.json {
		return s.w.Write(p)
	}
	for line := range strings.Lines(string(p)) {
		if err := console.PrintLine(s.w, map[string]string{"message": strings.TrimRight(line, "\n")}); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

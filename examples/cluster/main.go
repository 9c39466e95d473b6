//go:build unix

// Command cluster demonstrates a cluster. Three members and an attached worker, in processes of
// their own on this machine, carry out some hundred tasks, and one of the members is killed
// meanwhile. It prints the events, and exits with 0 only if every task has ended correctly.
//
//	go run ./examples/cluster                         with a temporary PostgreSQL server
//	go run ./examples/cluster -store postgres://…     with an empty database of yours
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

func main() {
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(runRole(role))
	}
	store := flag.String("store", "", "an empty database, as postgres://…; without it a server is started and thrown away")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := runExample(ctx, os.Stdout, *store); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

// runExample runs and reports everything.
func runExample(ctx context.Context, out io.Writer, store string) (err error) {
	if store == "" {
		server, err := pgtest.StartServer(ctx, "")
		if err != nil {
			return fmt.Errorf("starting PostgreSQL, whose programs have to be installed (or use -store): %w", err)
		}
		defer func() { err = errors.Join(err, server.Stop()) }()
		store = server.DSN("postgres")
	}
	dir, err := os.MkdirTemp("", "cluster-")
	if err != nil {
		return err
	}
	s := &demoCluster{store: store, dir: dir, out: out}
	defer func() {
		s.stopAll()
		if err != nil {
			err = fmt.Errorf("%w\nwhat the processes said is in %s", err, dir)
			return
		}
		err = os.RemoveAll(dir)
	}()
	if err := s.startAll(ctx); err != nil {
		return err
	}
	return s.runTasks(ctx)
}

// Command embedded is a program with an embedded workflow engine: one SQLite file, no server, no
// worker. Kill it while it runs and start it again: the task continues where it was.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/troupe-engine/troupe"
)

// invitations writes to every guest, three at a time, and then sums up.
const invitations = `
name: invitations
start: write
result: summary
nodes:
  write:
    kind: foreach
    exec_type: local_func
    func: invite
    parallel_mode: concurrent
    max_parallel: 3
    prep: {input_key: $params.guests}
    post: {output_key: letters}
  sum_up:
    exec_type: local_func
    func: sum_up
    retry: {max_attempts: 4}
    prep: {input_key: $shared.letters}
    post: {output_key: summary}
edges:
  - {from: write, action: default, to: sum_up}
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := runExample(ctx, "sqlite:embedded.db"); err != nil {
		fmt.Fprintln(os.Stderr, "embedded:", err)
		os.Exit(1)
	}
}

func runExample(ctx context.Context, store string) (err error) {
	engine, err := troupe.Open(ctx, troupe.Config{Store: store})
	if err != nil {
		return err
	}
	defer func() {
		if e := engine.Close(); err == nil {
			err = e
		}
	}()
	troupe.Handle(engine, "invite", inviteGuest)
	troupe.Handle(engine, "sum_up", sumUp)
	if err := engine.Publish(ctx, "invitations", []byte(invitations)); err != nil {
		return err
	}
	// The key makes this task start once, however often the program runs.
	id, err := engine.Start(ctx, "invitations", map[string]any{"guests": []string{"Ada", "Grace", "Edsger"}}, troupe.WithKey("party"))
	if err != nil {
		return err
	}
	result, err := engine.Wait(ctx, id)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %s\n", result.Status, result.Value)
	return nil
}

// inviteGuest handles one guest. The engine may call it again for the same guest, for example after
// a crash.
func inviteGuest(_ context.Context, guest string) (string, error) { return "Dear " + guest, nil }

func sumUp(_ context.Context, letters []string) (string, error) {
	return fmt.Sprintf("%d letters: %s", len(letters), strings.Join(letters, ", ")), nil
}

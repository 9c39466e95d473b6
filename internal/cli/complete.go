package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

// completeCmd returns completions for words that are not part of the command line's model: flows,
// ids, states. Completion scripts call it. The tag "complete" of a flag or an argument names the
// kind of its values. It prints one candidate per line, with a tab and a short description, and
// nothing if no server answers.
type completeCmd struct {
	remoteFlags
	Words []string `arg:"" optional:"" passthrough:"" help:"What was typed behind troupe; the last word may be empty or not yet whole."`
}

// completeTime is how long a completion may take.
const completeTime = 2 * time.Second

func (c *completeCmd) Run(ctx context.Context, a *app) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		return nil
	}
	l := readLine(a.newParser(a.newCommandTree()).Model.Node, words, c.remoteFlags)
	find, known := completions[l.kind]
	if l.kind == "input" && len(l.named) > 0 {
		find, known = a.inputsOf(l.named[0]), true
	}
	if !known {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	server, err := l.remote.newClient()
	if err != nil {
		return nil
	}
	found, err := find(ctx, server, words[len(words)-1])
	if err != nil {
		return nil // an error must not disturb the user's typing
	}
	for _, f := range found {
		fmt.Fprintln(a.stdout, strings.TrimRight(sanitizeText(f.id)+"\t"+sanitizeText(f.about), "\t"))
	}
	return nil
}

// partialCommand is an incomplete command line.
type partialCommand struct {
	kind   string // kind of the next word; "" if there is nothing to ask for
	remote remoteFlags
	named  []string // arguments before it, such as the flow
}

// readLine finds the kind of the last word, and the server to ask.
func readLine(n *kong.Node, words []string, otherwise remoteFlags) (l partialCommand) {
	l.remote = otherwise
	last, at := len(words)-1, 0
	for i := 0; i < last; i++ {
		word := words[i]
		if name, value, whole := strings.Cut(strings.TrimLeft(word, "-"), "="); strings.HasPrefix(word, "-") {
			f := flagNamed(withDefault(n), name)
			switch {
			case f == nil || f.IsBool():
			case whole:
				l.recordFlag(name, value)
			case i+1 == last:
				l.kind = f.Tag.Get("complete")
				return l
			default:
				l.recordFlag(name, words[i+1])
				i++
			}
			continue
		}
		if child := childNamed(n, word); child != nil && at == 0 {
			n = child
		} else {
			at++
			l.named = append(l.named, word)
		}
	}
	positional := withDefault(n).Positional
	if strings.HasPrefix(words[last], "-") || len(positional) == 0 || len(n.Children) > 0 && at == 0 {
		return l
	}
	if at < len(positional) || positional[len(positional)-1].IsSlice() {
		l.kind = positional[min(at, len(positional)-1)].Tag.Get("complete")
	}
	return l
}

// recordFlag stores the flags that select the server.
func (l *partialCommand) recordFlag(flag, value string) {
	switch flag {
	case "server":
		l.remote.Server = value
	case "token":
		l.remote.Token = value
	case "ca":
		l.remote.CA = value
	}
}

func childNamed(n *kong.Node, name string) *kong.Node {
	for _, child := range n.Children {
		if child.Name == name {
			return child
		}
	}
	return nil
}

func flagNamed(n *kong.Node, name string) *kong.Flag {
	for _, group := range n.AllFlags(false) {
		for _, f := range group {
			if f.Name == name || len(name) == 1 && f.Short == rune(name[0]) {
				return f
			}
		}
	}
	return nil
}

// completions holds, for each kind, the function that returns candidates for the typed text.
var completions = map[string]func(ctx context.Context, server *client.Client, typed string) ([]idCandidate, error){
	"flow": func(ctx context.Context, server *client.Client, _ string) ([]idCandidate, error) {
		flows, err := server.Flows(ctx, client.Paging{Limit: pageSize})
		return listCandidates(flows, err, func(f *wire.Flow) idCandidate { return idCandidate{orElse(f.Slug, f.ID), f.Name} })
	},
	"task": func(ctx context.Context, server *client.Client, typed string) ([]idCandidate, error) {
		tasks, err := server.Tasks(ctx, client.TaskQuery{IDPrefix: typed, Paging: client.Paging{Limit: 100}})
		return listCandidates(tasks, err, func(t *wire.TaskSummary) idCandidate { return idCandidate{t.ID, t.Flow + " " + stateOf(t)} })
	},
	"worker": func(ctx context.Context, server *client.Client, typed string) ([]idCandidate, error) {
		workers, err := server.WorkerPage(ctx, client.WorkerQuery{IDPrefix: typed, Paging: client.Paging{Limit: pageSize}})
		return listCandidates(workers, err, func(w *wire.KnownWorker) idCandidate { return idCandidate{w.ID, w.State} })
	},
	"job": func(ctx context.Context, server *client.Client, _ string) ([]idCandidate, error) {
		jobs, err := server.Jobs(ctx, client.Paging{Limit: pageSize})
		return listCandidates(jobs, err, func(j *wire.WaitingJob) idCandidate { return idCandidate{j.ID, j.Service + " " + j.State} })
	},
	"schedule": func(ctx context.Context, server *client.Client, _ string) ([]idCandidate, error) {
		list, err := server.Schedules(ctx, "", client.Paging{Limit: pageSize})
		return listCandidates(list, err, func(s *wire.Schedule) idCandidate { return idCandidate{s.Name, s.Flow + " " + formatTiming(s)} })
	},
	"service": serviceCandidates,
	"hook": func(ctx context.Context, server *client.Client, _ string) ([]idCandidate, error) {
		hooks, err := server.Hooks(ctx, client.Paging{Limit: pageSize})
		return listCandidates(hooks, err, func(h *wire.Hook) idCandidate { return idCandidate{h.Name, doesHook(h)} })
	},
	"member": func(ctx context.Context, server *client.Client, _ string) ([]idCandidate, error) {
		cluster, err := server.Members(ctx)
		if err != nil {
			return nil, err
		}
		var found []idCandidate
		for _, m := range cluster.Items {
			if m.State != "gone" {
				found = append(found, idCandidate{m.Name, m.State})
			}
		}
		return found, nil
	},
	"state": func(context.Context, *client.Client, string) ([]idCandidate, error) {
		return []idCandidate{{"pending", ""}, {"running", ""}, {"completed", ""}, {"failed", ""},
			{"canceling", ""}, {"canceled", ""}, {"paused", ""}}, nil
	},
}

// inputsOf returns a function that lists the inputs declared by a flow or a flow file, each
// followed by =.
func (a *app) inputsOf(flow string) func(context.Context, *client.Client, string) ([]idCandidate, error) {
	return func(ctx context.Context, server *client.Client, _ string) ([]idCandidate, error) {
		takes := declaredBy(ctx, server, flow, 0)
		if text, err := os.ReadFile(flow); err == nil {
			takes = declaredIn(text)
		}
		in, err := takes()
		if err != nil {
			return nil, err
		}
		var found []idCandidate
		for _, input := range in.List() {
			about := strings.TrimPrefix(input.String(), input.Name+": ")
			found = append(found, idCandidate{input.Name + "=", about})
		}
		return found, nil
	}
}

func listCandidates[T any](page *wire.Page[T], err error, of func(*T) idCandidate) ([]idCandidate, error) {
	if err != nil {
		return nil, err
	}
	found := make([]idCandidate, len(page.Items))
	for i := range page.Items {
		found[i] = of(&page.Items[i])
	}
	return found, nil
}

// serviceCandidates returns the services that workers offer, and those that jobs wait for.
func serviceCandidates(ctx context.Context, server *client.Client, _ string) ([]idCandidate, error) {
	workers, err := server.Workers(ctx)
	if err != nil {
		return nil, err
	}
	queues, err := server.Queues(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, w := range workers {
		names = append(names, w.Services...)
	}
	for _, q := range queues {
		names = append(names, q.Service)
	}
	slices.Sort(names)
	var found []idCandidate
	for _, name := range slices.Compact(names) {
		found = append(found, idCandidate{id: name})
	}
	return found, nil
}

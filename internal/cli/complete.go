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

// completeCmd is asked by completion scripts what may come next where that is no word of the command line itself: flows, ids,
// states. Flags and arguments say which of these they take by their tag "complete". It prints one a line, with a tab and a few
// words behind it, and nothing when no server answers.
type completeCmd struct {
	remote
	Words []string `arg:"" optional:"" passthrough:"" help:"What was typed behind troupe; the last word may be empty or not yet whole."`
}

// completeTime is how long somebody waits for an answer to a key.
const completeTime = 2 * time.Second

func (c *completeCmd) Run(ctx context.Context, a *app) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		return nil
	}
	l := readLine(a.parser(a.commands()).Model.Node, words, c.remote)
	find, known := completions[l.kind]
	if l.kind == "input" && len(l.named) > 0 {
		find, known = a.inputsOf(l.named[0]), true
	}
	if !known {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	server, err := l.remote.client()
	if err != nil {
		return nil
	}
	found, err := find(ctx, server, words[len(words)-1])
	if err != nil {
		return nil // whoever types does not want to read why
	}
	for _, f := range found {
		fmt.Fprintln(a.stdout, strings.TrimRight(clean(f.id)+"\t"+clean(f.about), "\t"))
	}
	return nil
}

// typing is a command line that is being typed.
type typing struct {
	kind   string // of what may come next; "" = nothing that is asked for
	remote remote
	named  []string // arguments before it, such as the flow
}

// readLine finds out where the last word is, and which server is meant.
func readLine(n *kong.Node, words []string, otherwise remote) (l typing) {
	l.remote = otherwise
	last, at := len(words)-1, 0
	for i := 0; i < last; i++ {
		word := words[i]
		if name, value, whole := strings.Cut(strings.TrimLeft(word, "-"), "="); strings.HasPrefix(word, "-") {
			f := flagNamed(withDefault(n), name)
			switch {
			case f == nil || f.IsBool():
			case whole:
				l.heed(name, value)
			case i+1 == last:
				l.kind = f.Tag.Get("complete")
				return l
			default:
				l.heed(name, words[i+1])
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

// heed remembers what says which server is meant.
func (l *typing) heed(flag, value string) {
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

// completions find what there is of a kind that may begin with what was typed.
var completions = map[string]func(ctx context.Context, server *client.Client, typed string) ([]candidate, error){
	"flow": func(ctx context.Context, server *client.Client, _ string) ([]candidate, error) {
		flows, err := server.Flows(ctx, client.Paging{Limit: pageSize})
		return each(flows, err, func(f *wire.Flow) candidate { return candidate{orElse(f.Slug, f.ID), f.Name} })
	},
	"task": func(ctx context.Context, server *client.Client, typed string) ([]candidate, error) {
		tasks, err := server.Tasks(ctx, client.TaskQuery{IDPrefix: typed, Paging: client.Paging{Limit: 100}})
		return each(tasks, err, func(t *wire.TaskSummary) candidate { return candidate{t.ID, t.Flow + " " + stateOf(t)} })
	},
	"worker": func(ctx context.Context, server *client.Client, typed string) ([]candidate, error) {
		workers, err := server.WorkerPage(ctx, client.WorkerQuery{IDPrefix: typed, Paging: client.Paging{Limit: pageSize}})
		return each(workers, err, func(w *wire.KnownWorker) candidate { return candidate{w.ID, w.State} })
	},
	"job": func(ctx context.Context, server *client.Client, _ string) ([]candidate, error) {
		jobs, err := server.Jobs(ctx, client.Paging{Limit: pageSize})
		return each(jobs, err, func(j *wire.WaitingJob) candidate { return candidate{j.ID, j.Service + " " + j.State} })
	},
	"schedule": func(ctx context.Context, server *client.Client, _ string) ([]candidate, error) {
		list, err := server.Schedules(ctx, "", client.Paging{Limit: pageSize})
		return each(list, err, func(s *wire.Schedule) candidate { return candidate{s.Name, s.Flow + " " + whenOf(s)} })
	},
	"service": services,
	"hook": func(ctx context.Context, server *client.Client, _ string) ([]candidate, error) {
		hooks, err := server.Hooks(ctx, client.Paging{Limit: pageSize})
		return each(hooks, err, func(h *wire.Hook) candidate { return candidate{h.Name, doesHook(h)} })
	},
	"member": func(ctx context.Context, server *client.Client, _ string) ([]candidate, error) {
		cluster, err := server.Members(ctx)
		if err != nil {
			return nil, err
		}
		var found []candidate
		for _, m := range cluster.Items {
			if m.State != "gone" {
				found = append(found, candidate{m.Name, m.State})
			}
		}
		return found, nil
	},
	"state": func(context.Context, *client.Client, string) ([]candidate, error) {
		return []candidate{{"pending", ""}, {"running", ""}, {"completed", ""}, {"failed", ""}, {"canceling", ""}, {"canceled", ""}, {"paused", ""}}, nil
	},
}

// inputsOf are the names that a flow, or the file of one, declares, each with the = behind it.
func (a *app) inputsOf(flow string) func(context.Context, *client.Client, string) ([]candidate, error) {
	return func(ctx context.Context, server *client.Client, _ string) ([]candidate, error) {
		takes := declaredBy(ctx, server, flow, 0)
		if text, err := os.ReadFile(flow); err == nil {
			takes = declaredIn(text)
		}
		in, err := takes()
		if err != nil {
			return nil, err
		}
		var found []candidate
		for _, input := range in.List() {
			about := strings.TrimPrefix(input.String(), input.Name+": ")
			found = append(found, candidate{input.Name + "=", about})
		}
		return found, nil
	}
}

func each[T any](page *wire.Page[T], err error, of func(*T) candidate) ([]candidate, error) {
	if err != nil {
		return nil, err
	}
	found := make([]candidate, len(page.Items))
	for i := range page.Items {
		found[i] = of(&page.Items[i])
	}
	return found, nil
}

// services are those that workers offer, and those that jobs wait for.
func services(ctx context.Context, server *client.Client, _ string) ([]candidate, error) {
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
	var found []candidate
	for _, name := range slices.Compact(names) {
		found = append(found, candidate{id: name})
	}
	return found, nil
}

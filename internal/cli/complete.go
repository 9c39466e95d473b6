package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/cli/console"
	"github.com/troupe-engine/troupe/internal/cli/operate"
	"github.com/troupe-engine/troupe/internal/cli/schedules"
	"github.com/troupe-engine/troupe/internal/cli/tasks"
)

// completeCmd prints completions for words outside the command line's model: flows, ids, states.
// Completion scripts call the command. The tag "complete" of a flag or an argument names the kind
// of its values. Each candidate is a line with a tab and a description; without a server, nothing
// is printed.
type completeCmd struct {
	console.RemoteFlags
	Words []string `arg:"" optional:"" passthrough:"" help:"Words typed after the program name; the last one may be incomplete."`
}

// completeTime is how long a completion may take.
const completeTime = 2 * time.Second

func (c *completeCmd) Run(ctx context.Context, a *console.App) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		return nil
	}
	l := readLine(newParser(a.Program, newCommandTree(a.Program)).Model.Node, words, c.RemoteFlags)
	find, known := completions[l.kind]
	if l.kind == "input" && len(l.named) > 0 {
		find, known = inputsOf(l.named[0]), true
	}
	if !known {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	server, err := l.remote.NewClient()
	if err != nil {
		return nil
	}
	found, err := find(ctx, server, words[len(words)-1])
	if err != nil {
		return nil // an error must not disturb the user's typing
	}
	for _, f := range found {
		fmt.Fprintln(a.Stdout, strings.TrimRight(console.SanitizeText(f.ID)+"\t"+console.SanitizeText(f.About), "\t"))
	}
	return nil
}

// partialCommand is an incomplete command line.
type partialCommand struct {
	kind   string // kind of the next word; "" if there are no completions
	remote console.RemoteFlags
	named  []string // arguments before the next word, such as the flow
}

// readLine finds the kind of the last word, and the server that lists candidates.
func readLine(n *kong.Node, words []string, otherwise console.RemoteFlags) (l partialCommand) {
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
var completions = map[string]func(ctx context.Context, server *client.Client, typed string) ([]console.Candidate, error){
	"flow": func(ctx context.Context, server *client.Client, _ string) ([]console.Candidate, error) {
		page, err := server.Flows(ctx, client.Paging{Limit: console.PageSize})
		return listCandidates(page, err, func(f *wire.Flow) console.Candidate {
			return console.Candidate{ID: cmp.Or(f.Slug, f.ID), About: f.Name}
		})
	},
	"task": func(ctx context.Context, server *client.Client, typed string) ([]console.Candidate, error) {
		page, err := server.Tasks(ctx, client.TaskQuery{IDPrefix: typed, Paging: client.Paging{Limit: 100}})
		return listCandidates(page, err, func(t *wire.TaskSummary) console.Candidate {
			return console.Candidate{ID: t.ID, About: t.Flow + " " + console.FormatState(t)}
		})
	},
	"worker": func(ctx context.Context, server *client.Client, typed string) ([]console.Candidate, error) {
		page, err := server.WorkerPage(ctx, client.WorkerQuery{IDPrefix: typed, Paging: client.Paging{Limit: console.PageSize}})
		return listCandidates(page, err, func(w *wire.Worker) console.Candidate { return console.Candidate{ID: w.ID, About: w.State} })
	},
	"job": func(ctx context.Context, server *client.Client, _ string) ([]console.Candidate, error) {
		jobs, err := server.Jobs(ctx, client.Paging{Limit: console.PageSize})
		return listCandidates(jobs, err, func(j *wire.WaitingJob) console.Candidate {
			return console.Candidate{ID: j.ID, About: j.Service + " " + j.State}
		})
	},
	"schedule": func(ctx context.Context, server *client.Client, _ string) ([]console.Candidate, error) {
		list, err := server.Schedules(ctx, "", client.Paging{Limit: console.PageSize})
		return listCandidates(list, err, func(s *wire.Schedule) console.Candidate {
			return console.Candidate{ID: s.Name, About: s.Flow + " " + schedules.FormatTiming(s)}
		})
	},
	"service": serviceCandidates,
	"hook": func(ctx context.Context, server *client.Client, _ string) ([]console.Candidate, error) {
		hooks, err := server.Hooks(ctx, client.Paging{Limit: console.PageSize})
		return listCandidates(hooks, err, func(h *wire.Hook) console.Candidate {
			return console.Candidate{ID: h.Name, About: operate.DescribeHook(h)}
		})
	},
	"member": func(ctx context.Context, server *client.Client, _ string) ([]console.Candidate, error) {
		cluster, err := server.Members(ctx)
		if err != nil {
			return nil, err
		}
		var found []console.Candidate
		for _, m := range cluster.Items {
			if m.State != "gone" {
				found = append(found, console.Candidate{ID: m.Name, About: m.State})
			}
		}
		return found, nil
	},
	"state": func(context.Context, *client.Client, string) ([]console.Candidate, error) {
		return []console.Candidate{{ID: "pending", About: ""}, {ID: "running", About: ""},
			{ID: "completed", About: ""}, {ID: "failed", About: ""},
			{ID: "canceling", About: ""}, {ID: "canceled", About: ""}, {ID: "paused", About: ""}}, nil
	},
}

// inputsOf returns a function that lists the inputs declared by a flow or a flow file, each
// followed by =.
func inputsOf(flow string) func(context.Context, *client.Client, string) ([]console.Candidate, error) {
	return func(ctx context.Context, server *client.Client, _ string) ([]console.Candidate, error) {
		takes := tasks.NewInputsLookup(ctx, server, flow, 0)
		if text, err := os.ReadFile(flow); err == nil {
			takes = tasks.NewDeclaredLookup(text)
		}
		in, err := takes()
		if err != nil {
			return nil, err
		}
		var found []console.Candidate
		for _, input := range in.List() {
			about := strings.TrimPrefix(input.String(), input.Name+": ")
			found = append(found, console.Candidate{ID: input.Name + "=", About: about})
		}
		return found, nil
	}
}

func listCandidates[T any](page *wire.Page[T], err error, of func(*T) console.Candidate) ([]console.Candidate, error) {
	if err != nil {
		return nil, err
	}
	found := make([]console.Candidate, len(page.Items))
	for i := range page.Items {
		found[i] = of(&page.Items[i])
	}
	return found, nil
}

// serviceCandidates returns the services that workers offer, and the services that jobs wait for.
func serviceCandidates(ctx context.Context, server *client.Client, _ string) ([]console.Candidate, error) {
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
	var found []console.Candidate
	for _, name := range slices.Compact(names) {
		found = append(found, console.Candidate{ID: name})
	}
	return found, nil
}

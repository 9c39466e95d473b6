package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

// An id may be shortened as long as the beginning is unique. The commands resolve it here before
// they do anything.

// Candidate is an object with an id that begins with the typed text.
type Candidate struct{ ID, About string }

// mostCandidates is the number of candidates that are listed if the text is ambiguous.
const mostCandidates = 10

// chooseCandidate returns the only candidate. If there is none, it returns the typed text, and the
// server reports that it is unknown.
func chooseCandidate(what, typed string, found []Candidate) (string, error) {
	switch {
	case len(found) == 0 || slices.ContainsFunc(found, func(c Candidate) bool { return c.ID == typed }):
		return typed, nil
	case len(found) == 1:
		return found[0].ID, nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "several %s IDs start with %s:", what, typed)
	for i, c := range found {
		if i == mostCandidates {
			b.WriteString("\n  …")
			break
		}
		b.WriteString("\n  " + SanitizeText(strings.TrimSpace(c.ID+"  "+c.About)))
	}
	return "", UsageError{fmt.Errorf("%s\nhint: use a longer prefix", b.String())}
}

// Length and prefixes of ids made by servers; the prefix may be omitted.
const (
	idLength = 36
	ofTasks  = "task-"
	ofFlows  = "flow-"
)

// FindTaskID returns the full id of a task from its beginning.
func FindTaskID(ctx context.Context, server *client.Client, typed string) (string, error) {
	if whole := len(strings.TrimPrefix(typed, ofTasks)) >= idLength; whole || typed == "" {
		return typed, nil
	}
	found, err := tasksFrom(ctx, server, typed)
	if err == nil && len(found) == 0 {
		found, err = tasksFrom(ctx, server, ofTasks+typed)
	}
	if err != nil {
		return "", err
	}
	return chooseCandidate("task", typed, found)
}

// tasksFrom returns tasks with ids that begin with prefix.
func tasksFrom(ctx context.Context, server *client.Client, prefix string) ([]Candidate, error) {
	tasks, err := server.Tasks(ctx, client.TaskQuery{IDPrefix: prefix, Paging: client.Paging{Limit: mostCandidates + 1}})
	if err != nil {
		return nil, err
	}
	found := make([]Candidate, len(tasks.Items))
	for i, t := range tasks.Items {
		found[i] = Candidate{t.ID, fmt.Sprintf("%s, %s, started %s", t.Flow, FormatState(&t), FormatTime(t.CreatedAt))}
	}
	return found, nil
}

// FindJob returns a job from the beginning of its id. Ids of jobs begin with the id of their task.
func FindJob(ctx context.Context, server *client.Client, typed string) (*wire.Job, error) {
	job, err := server.Job(ctx, typed)
	if client.KindOf(err) != "not_found" {
		return job, err
	}
	found, unclear := jobsFrom(ctx, server, typed)
	if unclear != nil {
		return nil, unclear
	}
	id, unclear := chooseCandidate("job", typed, found)
	if unclear != nil {
		return nil, unclear
	}
	if id == typed {
		return nil, err
	}
	return server.Job(ctx, id)
}

// jobsFrom returns jobs with ids that begin with the typed text.
func jobsFrom(ctx context.Context, server *client.Client, typed string) ([]Candidate, error) {
	task, rest, _ := strings.Cut(typed, ".")
	id, err := FindTaskID(ctx, server, task)
	if err != nil {
		return nil, err
	}
	prefix := id
	if rest != "" {
		prefix += "." + rest
	}
	var found []Candidate
	for run, err := range client.All(func(cursor string) (*wire.Page[wire.Run], error) {
		return server.Runs(ctx, id, client.Paging{Cursor: cursor, Limit: PageSize})
	}) {
		if client.KindOf(err) == "not_found" {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if run.Job != "" && strings.HasPrefix(run.Job, prefix) {
			found = append(found, Candidate{run.Job, FormatPlace(&run.Place) + ", " + run.State})
		}
		if len(found) > mostCandidates {
			break
		}
	}
	return found, nil
}

// FindWorkerID returns the full id of a worker from its beginning.
func FindWorkerID(ctx context.Context, server *client.Client, typed string) (string, error) {
	workers, err := server.WorkerPage(ctx, client.WorkerQuery{IDPrefix: typed, Paging: client.Paging{Limit: mostCandidates + 1}})
	if err != nil {
		return "", err
	}
	found := make([]Candidate, len(workers.Items))
	for i, w := range workers.Items {
		found[i] = Candidate{w.ID, strings.Join(w.Services, ", ")}
	}
	return chooseCandidate("worker", typed, found)
}

// leastID is the number of characters of a flow's id that must be typed; a shorter text is a slug.
const leastID = 6

// FindFlow returns a flow's slug or full id from a slug or the beginning of an id.
func FindFlow(ctx context.Context, server *client.Client, typed string) (string, error) {
	id := strings.TrimPrefix(typed, ofFlows)
	if len(id) < leastID || len(id) >= idLength || strings.Trim(id, "0123456789abcdef-") != "" {
		return typed, nil
	}
	flows, err := ReadAll(0, func(p client.Paging) (*wire.Page[wire.Flow], error) { return server.Flows(ctx, p) })
	if err != nil {
		return "", err
	}
	var found []Candidate
	for _, f := range flows {
		if f.Slug == typed {
			return typed, nil
		}
		if strings.HasPrefix(f.ID, typed) || strings.HasPrefix(f.ID, ofFlows+typed) {
			found = append(found, Candidate{f.ID, cmp.Or(f.Slug, f.Name)})
		}
	}
	return chooseCandidate("flow", typed, found)
}

// FindMember returns a member's name or full incarnation from a name or the beginning of an
// incarnation.
func FindMember(ctx context.Context, server *client.Client, typed string) (string, error) {
	cluster, err := server.Members(ctx)
	if err != nil {
		return "", err
	}
	var found []Candidate
	for _, m := range cluster.Items {
		if m.Name == typed {
			return typed, nil
		}
		if strings.HasPrefix(m.Incarnation, typed) && m.State != "gone" {
			found = append(found, Candidate{m.Incarnation, m.Name})
		}
	}
	return chooseCandidate("member", typed, found)
}

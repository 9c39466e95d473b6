package tasks

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

// ApprovalCommand holds the commands for approvals.
type ApprovalCommand struct {
	List   approvalListCmd   `cmd:"" help:"List approvals, oldest first."`
	Answer approvalAnswerCmd `cmd:"" help:"Approve or reject an approval."`
	Link   approvalLinkCmd   `cmd:"" help:"Create a link for answering without a token."`
}

type approvalListCmd struct {
	console.RemoteFlags
	console.PagingFlags
	Flow  string `complete:"flow" help:"Filter by flow."`
	State string `enum:"open,answered,ended" default:"open" help:"Filter by state: open, answered, or ended without an answer (${default})."`
	Text  string `name:"search" help:"Filter by text in the title, or by a prefix of the task ID."`
}

func (c *approvalListCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	q := client.ApprovalQuery{State: c.State, Text: c.Text}
	if q.Flow, err = console.FindFlow(ctx, server, c.Flow); err != nil {
		return err
	}
	list, err := console.ReadPage(c.PagingFlags, func(p client.Paging) (*wire.Page[wire.Approval], error) {
		q.Paging = p
		return server.Approvals(ctx, q)
	})
	if err != nil {
		return err
	}
	t := console.Table{Header: []string{"ID", "FLOW", "NODE", "TITLE", "REQUESTED", "EXPIRES", "ANSWER", "BY"},
		Spare: []string{"EXPIRES", "ANSWER", "BY", "TITLE"}}
	return console.PrintPage(a, c.OutputFlag, list, t, func(w *wire.Approval) []string {
		node := w.Node
		if w.Scope != "" {
			node = w.Scope + "/" + node
		}
		answer := w.Action
		if answer == "" && w.State != "open" {
			answer = w.State
		}
		return []string{w.ID, w.Flow, node, w.Title, console.FormatTime(w.WaitingSince),
			console.FormatTime(w.Deadline), answer, w.AnsweredBy}
	})
}

// approvalArg identifies an approval.
type approvalArg struct {
	Approval string `arg:"" complete:"task" help:"Approval ID, or the ID or unique prefix of its task."`
	Key      string `help:"Key of the approval, if the task has several."`
}

// resolveApprovalID returns the id of the approval.
func (c *approvalArg) resolveApprovalID(ctx context.Context, server *client.Client) (string, error) {
	if strings.Count(c.Approval, ".") == 2 {
		return c.Approval, c.checkKey(ctx, server)
	}
	task, err := console.FindTaskID(ctx, server, c.Approval)
	if err != nil {
		return "", err
	}
	open, err := server.Approvals(ctx, client.ApprovalQuery{Task: task, Paging: client.Paging{Limit: console.PageSize}})
	if err != nil {
		return "", err
	}
	var ids []string
	for _, w := range open.Items {
		if c.Key == "" || w.Key == c.Key {
			ids = append(ids, w.ID)
		}
	}
	switch len(ids) {
	case 0:
		if len(open.Items) > 0 {
			return "", console.NewUsageError("the task %s has no open approval with the key %s", task, c.Key)
		}
		return "", console.NewUsageError("the task %s has no open approval: see troupe task show %s", task, task)
	case 1:
		return ids[0], nil
	}
	return "", console.NewUsageError("the task %s has several open approvals: use one of these IDs: %s", task, strings.Join(ids, ", "))
}

// checkKey checks that an approval given by its full id has the key given with --key.
func (c *approvalArg) checkKey(ctx context.Context, server *client.Client) error {
	if c.Key == "" {
		return nil
	}
	w, err := server.Approval(ctx, c.Approval)
	if err != nil {
		return err
	}
	if w.Key != c.Key {
		return console.NewUsageError("the approval %s has the key %s, not %s", c.Approval, console.SanitizeText(w.Key), c.Key)
	}
	return nil
}

type approvalAnswerCmd struct {
	console.RemoteFlags
	senderFlag
	approvalArg
	Answer  string `arg:"" optional:"" help:"approve, reject or another action of the node. Omit it with --value."`
	Value   string `placeholder:"JSON" help:"Answer that fits the form of the approval: JSON, or else a string."`
	Comment string `help:"Comment stored with the answer."`
}

func (c *approvalAnswerCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	answer := wire.ApprovalAnswer{Action: c.Answer, Comment: c.Comment, AnsweredBy: c.senderName()}
	switch {
	case (c.Value == "") == (c.Answer == ""):
		return console.NewUsageError("give either an answer such as approve or reject, or --value")
	case c.Value != "":
		answer.Value = jsonOrText(c.Value)
	}
	id, err := c.resolveApprovalID(ctx, server)
	if err != nil {
		return err
	}
	told, err := server.AnswerApproval(ctx, id, answer)
	if err != nil {
		return err
	}
	if !told.Accepted {
		return fmt.Errorf("already answered by %s at %s", cmp.Or(told.AnsweredBy, "another user"), console.FormatTime(told.EndedAt))
	}
	return c.showAnswered(a, told)
}

func (c *approvalAnswerCmd) showAnswered(a *console.App, told *wire.AnsweredApproval) error {
	if c.IsJSON() {
		return console.PrintJSON(a.Stdout, told)
	}
	_, err := fmt.Fprintf(a.Stdout, "%s: %s\n", console.SanitizeText(told.ID), console.SanitizeText(cmp.Or(told.Action, told.State)))
	return err
}

type approvalLinkCmd struct {
	console.RemoteFlags
	approvalArg
	Name    string        `required:"" help:"Name of the person who answers, stored with the answer."`
	Expires time.Duration `default:"24h" help:"Lifetime of the link, at most 2160h."`
}

func (c *approvalLinkCmd) Run(ctx context.Context, a *console.App) error {
	if c.Expires < time.Second {
		return console.NewUsageError("--expires %s: use at least 1s", c.Expires)
	}
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	id, err := c.resolveApprovalID(ctx, server)
	if err != nil {
		return err
	}
	link, err := server.LinkApproval(ctx, id, wire.LinkRequest{Name: c.Name, ExpiresInMS: c.Expires.Milliseconds()})
	if err != nil {
		return err
	}
	if c.IsJSON() {
		return console.PrintJSON(a.Stdout, link)
	}
	_, err = fmt.Fprintln(a.Stdout, c.ServerURLs()[0]+console.SanitizeText(link.Path))
	return err
}

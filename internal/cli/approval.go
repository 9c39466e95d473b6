package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

type approvalCmd struct {
	List   approvalListCmd   `cmd:"" help:"List what tasks ask people for, that first which has waited longest."`
	Answer approvalAnswerCmd `cmd:"" help:"Approve or reject what a task asks for."`
	Link   approvalLinkCmd   `cmd:"" help:"Make a link by which somebody without a token may answer."`
}

type approvalListCmd struct {
	remoteFlags
	pagingFlags
	Flow  string `complete:"flow" help:"Only those of this flow."`
	State string `enum:"open,answered,over" default:"open" help:"open, answered, or over: nobody decided."`
	Text  string `name:"q" help:"What the title says, or the id of the task begins with."`
}

func (c *approvalListCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	q := client.ApprovalQuery{State: c.State, Text: c.Text}
	if q.Flow, err = flowNamed(ctx, server, c.Flow); err != nil {
		return err
	}
	list, err := readPage(c.pagingFlags, func(p client.Paging) (*wire.Page[wire.Approval], error) {
		q.Paging = p
		return server.Approvals(ctx, q)
	})
	if err != nil {
		return err
	}
	t := table{header: []string{"ID", "FLOW", "NODE", "TITLE", "SINCE", "UNTIL", "ANSWER", "BY"},
		spare: []string{"UNTIL", "ANSWER", "BY", "TITLE"}}
	return printPage(a, c.outputFlag, list, t, func(w *wire.Approval) []string {
		node := w.Node
		if w.Scope != "" {
			node = w.Scope + "/" + node
		}
		answer := w.Action
		if answer == "" && w.State != "open" {
			answer = w.State
		}
		return []string{w.ID, w.Flow, node, w.Title, formatTime(w.Since), formatTime(w.Until), answer, w.By}
	})
}

// approvalArg identifies an approval.
type approvalArg struct {
	Approval string `arg:"" complete:"task" help:"Id of the approval, or of a task that asks for one (or what that begins with)."`
	Key      string `help:"Key of the approval, of a task that asks for several."`
}

// resolveApprovalID returns the id of the approval.
func (c *approvalArg) resolveApprovalID(ctx context.Context, server *client.Client) (string, error) {
	if strings.Count(c.Approval, ".") == 2 {
		return c.Approval, c.checkKey(ctx, server)
	}
	task, err := taskID(ctx, server, c.Approval)
	if err != nil {
		return "", err
	}
	open, err := server.Approvals(ctx, client.ApprovalQuery{Task: task, Paging: client.Paging{Limit: pageSize}})
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
			return "", newUsageError("the task %s asks for no approval with the key %s", task, c.Key)
		}
		return "", newUsageError("the task %s waits for nobody's approval: troupe task show %s tells what it waits for", task, task)
	case 1:
		return ids[0], nil
	}
	return "", newUsageError("the task %s asks for several: say which, by its id: %s", task, strings.Join(ids, ", "))
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
		return newUsageError("the approval %s has the key %s, not %s", c.Approval, sanitizeText(w.Key), c.Key)
	}
	return nil
}

type approvalAnswerCmd struct {
	remoteFlags
	senderFlag
	approvalArg
	Answer  string `arg:"" optional:"" help:"approve, reject, or another action that follows from it. Absent with --value."`
	Value   string `placeholder:"JSON" help:"What fits the form of the approval, or what the task is told instead of true or false: JSON, or else text."`
	Comment string `help:"What is kept with the answer."`
}

func (c *approvalAnswerCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	answer := wire.Answer{Action: c.Answer, Comment: c.Comment, By: c.senderName()}
	switch {
	case (c.Value == "") == (c.Answer == ""):
		return newUsageError("say approve, reject or another action, or --value: one of them")
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
	if !told.Counts {
		return fmt.Errorf("%s answered before, at %s, and that counts", cmp.Or(told.By, "somebody"), formatTime(told.EndedAt))
	}
	return c.showAnswered(a, told)
}

func (c *approvalAnswerCmd) showAnswered(a *app, told *wire.Answered) error {
	if c.isJSON() {
		return printJSON(a.stdout, told)
	}
	_, err := fmt.Fprintf(a.stdout, "%s: %s\n", sanitizeText(told.ID), sanitizeText(cmp.Or(told.Action, told.State)))
	return err
}

type approvalLinkCmd struct {
	remoteFlags
	approvalArg
	Name    string        `required:"" help:"Who is to answer: it is kept with the answer."`
	Expires time.Duration `default:"24h" help:"For how long the link is good, at most 2160h."`
}

func (c *approvalLinkCmd) Run(ctx context.Context, a *app) error {
	if c.Expires < time.Second {
		return newUsageError("--expires %s: a link is good for a second at least", c.Expires)
	}
	server, err := c.newClient()
	if err != nil {
		return err
	}
	id, err := c.resolveApprovalID(ctx, server)
	if err != nil {
		return err
	}
	link, err := server.LinkApproval(ctx, id, wire.NewLink{Name: c.Name, ExpiresIn: int64(c.Expires / time.Second)})
	if err != nil {
		return err
	}
	if c.isJSON() {
		return printJSON(a.stdout, link)
	}
	_, err = fmt.Fprintln(a.stdout, c.serverURLs()[0]+sanitizeText(link.Path))
	return err
}

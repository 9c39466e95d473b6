// Package operate has the commands for operators: members, health, statistics, tokens, hooks and
// imports.
package operate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

// ClusterCommand groups the commands for operators of a cluster. Any member can serve them.
type ClusterCommand struct {
	Members membersCmd `cmd:"" help:"List members with leases, shards and tasks."`
	Shards  shardsCmd  `cmd:"" help:"List shard owners and recent moves."`
	Drain   drainCmd   `cmd:"" help:"Move all tasks of a member to other members."`
}

type membersCmd struct{ console.RemoteFlags }

func (c *membersCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	defer server.Close()
	cluster, err := server.Members(ctx)
	if err != nil {
		return err
	}
	if c.IsJSON() {
		return console.PrintJSON(a.Stdout, cluster)
	}
	rows := make([][]string, len(cluster.Items))
	for i, m := range cluster.Items {
		rows[i] = []string{m.Name, m.State, leaseOf(&m), strconv.Itoa(m.Shards), strconv.Itoa(m.ActiveTasks), strconv.Itoa(m.IdleTasks),
			m.Version, console.FormatTime(m.JoinedAt), m.URL, m.Gossip, m.Incarnation}
	}
	if err := console.PrintTable(a.Stdout, []string{"MEMBER", "STATE", "LEASE", "SHARDS", "ACTIVE",
		"RESTING", "VERSION", "JOINED", "ADDRESS", "GOSSIP", "INCARNATION"}, rows); err != nil {
		return err
	}
	if cluster.Unowned > 0 {
		fmt.Fprintf(a.Stdout, "\n%s: their tasks wait\n", isOwned(cluster.Unowned))
	}
	return nil
}

func leaseOf(m *wire.Member) string {
	if m.State == "gone" {
		return ""
	}
	return console.FormatDuration(time.Duration(m.LeaseMS) * time.Millisecond)
}

func isOwned(shards int) string {
	if shards == 1 {
		return "1 shard has no owner at the moment"
	}
	return fmt.Sprintf("%d shards have no owner at the moment", shards)
}

type shardsCmd struct {
	console.RemoteFlags
	Task string `placeholder:"ID" complete:"task" help:"Show the owner of this task (ID or unique prefix)."`
}

func (c *shardsCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	defer server.Close()
	if c.Task, err = console.FindTaskID(ctx, server, c.Task); err != nil {
		return err
	}
	shards, err := server.Shards(ctx, c.Task)
	if err != nil {
		return err
	}
	switch {
	case c.IsJSON():
		return console.PrintJSON(a.Stdout, shards)
	case c.Task != "":
		s := shards.Items[0]
		return console.PrintFields(a.Stdout, "Task", c.Task, "Shard", strconv.Itoa(s.Shard), "Member",
			cmp.Or(s.Member, "none at the moment"), "Incarnation", s.Owner)
	}
	if err := showOwners(a, shards.Items); err != nil {
		return err
	}
	return showMoves(a, shards.Moves)
}

// showOwners prints how many shards each member owns, and the number of their tasks.
func showOwners(a *console.App, shards []wire.Shard) error {
	type owner struct{ name, incarnation string }
	type sums struct{ shards, active, resting int }
	owned := map[owner]sums{}
	var order []owner
	for _, s := range shards {
		o := owner{s.Member, s.Owner}
		n, known := owned[o]
		if !known {
			order = append(order, o)
		}
		owned[o] = sums{n.shards + 1, n.active + s.ActiveTasks, n.resting + s.IdleTasks}
	}
	slices.SortFunc(order, func(a, b owner) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.incarnation, b.incarnation))
	})
	rows := make([][]string, len(order))
	for i, o := range order {
		n := owned[o]
		rows[i] = []string{cmp.Or(o.name, "none"), strconv.Itoa(n.shards), strconv.Itoa(n.active), strconv.Itoa(n.resting), o.incarnation}
	}
	return console.PrintTable(a.Stdout, []string{"MEMBER", "SHARDS", "ACTIVE", "RESTING", "INCARNATION"}, rows)
}

func showMoves(a *console.App, moves []wire.ShardMove) error {
	if len(moves) == 0 {
		fmt.Fprintln(a.Stdout, "\nNo shard moved in the last ten minutes.")
		return nil
	}
	fmt.Fprintln(a.Stdout)
	rows := make([][]string, len(moves))
	for i, m := range moves {
		from := "none"
		if m.From != nil {
			from = nameOf(*m.From)
		}
		rows[i] = []string{console.FormatTime(m.At), strconv.Itoa(m.Shards), from, nameOf(m.To)}
	}
	return console.PrintTable(a.Stdout, []string{"MOVED", "SHARDS", "FROM", "TO"}, rows)
}

func nameOf(m wire.MemberName) string { return cmp.Or(m.Name, m.Incarnation) }

type drainCmd struct {
	console.RemoteFlags
	Member string `arg:"" complete:"member" help:"Member name, or incarnation or unique prefix of it."`
	Undo   bool   `help:"Let the member take tasks again."`
	Wait   bool   `help:"Wait until the member owns no shards."`
}

// Help describes the purpose of the command.
func (drainCmd) Help() string {
	return `The member keeps running and serving requests, and attached workers stay connected. It takes no tasks until it restarts, or until --undo.
Running attempts are not repeated, and callers see no errors. troupe serve drains itself when it stops.`
}

func (c *drainCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	defer server.Close()
	if c.Member, err = console.FindMember(ctx, server, c.Member); err != nil {
		return err
	}
	member, err := c.drainMember(ctx, server)
	if err != nil {
		return err
	}
	if c.IsJSON() {
		return console.PrintJSON(a.Stdout, member)
	}
	switch {
	case c.Undo:
		fmt.Fprintf(a.Stdout, "%s takes tasks again\n", member.Name)
	case member.Shards == 0:
		fmt.Fprintf(a.Stdout, "%s is drained\n", member.Name)
	default:
		fmt.Fprintf(a.Stdout, "%s is draining %s\n", member.Name, console.FormatCount(member.Shards, "shard"))
	}
	return nil
}

func (c *drainCmd) drainMember(ctx context.Context, server *client.Client) (*wire.Member, error) {
	if c.Undo {
		return server.Undrain(ctx, c.Member)
	}
	for {
		member, err := server.Drain(ctx, c.Member) // repeating it changes nothing
		if err != nil || !c.Wait || member.Shards == 0 {
			return member, err
		}
		select {
		case <-time.After(drainPause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// drainPause is the pause between two checks of a member that hands over.
const drainPause = 200 * time.Millisecond

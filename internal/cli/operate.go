package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

// clusterCmd groups the commands for operators of a cluster. Any member can serve them.
type clusterCmd struct {
	Members membersCmd `cmd:"" help:"List the members: their leases, shards and tasks."`
	Shards  shardsCmd  `cmd:"" help:"Tell who owns the shards, and which moved in the last minutes."`
	Drain   drainCmd   `cmd:"" help:"Have a member hand its tasks over and take none any more."`
}

type membersCmd struct{ remoteFlags }

func (c *membersCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	defer server.Close()
	cluster, err := server.Members(ctx)
	if err != nil {
		return err
	}
	if c.isJSON() {
		return printJSON(a.stdout, cluster)
	}
	rows := make([][]string, len(cluster.Items))
	for i, m := range cluster.Items {
		rows[i] = []string{m.Name, m.State, leaseOf(&m), strconv.Itoa(m.Shards), strconv.Itoa(m.Active), strconv.Itoa(m.Resting),
			m.Version, formatTime(m.JoinedAt), m.URL, m.Gossip, m.Incarnation}
	}
	if err := printTable(a.stdout, []string{"MEMBER", "STATE", "LEASE", "SHARDS", "ACTIVE",
		"RESTING", "VERSION", "JOINED", "ADDRESS", "GOSSIP", "INCARNATION"}, rows); err != nil {
		return err
	}
	if cluster.Unowned > 0 {
		fmt.Fprintf(a.stdout, "\n%s: tasks there wait\n", isOwned(cluster.Unowned))
	}
	return nil
}

func leaseOf(m *wire.Member) string {
	if m.State == "gone" {
		return ""
	}
	return formatDuration(time.Duration(m.LeaseMS) * time.Millisecond)
}

func isOwned(shards int) string {
	if shards == 1 {
		return "1 shard is nobody's for the moment"
	}
	return fmt.Sprintf("%d shards are nobody's for the moment", shards)
}

type shardsCmd struct {
	remoteFlags
	Task string `placeholder:"ID" complete:"task" help:"Tell who owns this task. The beginning of its id will do."`
}

func (c *shardsCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	defer server.Close()
	if c.Task, err = taskID(ctx, server, c.Task); err != nil {
		return err
	}
	shards, err := server.Shards(ctx, c.Task)
	if err != nil {
		return err
	}
	switch {
	case c.isJSON():
		return printJSON(a.stdout, shards)
	case c.Task != "":
		s := shards.Items[0]
		return printFields(a.stdout, "Task", c.Task, "Shard", strconv.Itoa(s.Shard), "Member",
			orElse(s.Member, "nobody for the moment"), "Incarnation", s.Owner)
	}
	if err := showOwners(a, shards.Items); err != nil {
		return err
	}
	return showMoves(a, shards.Moves)
}

// showOwners prints how many shards each member owns, and the number of their tasks.
func showOwners(a *app, shards []wire.Shard) error {
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
		owned[o] = sums{n.shards + 1, n.active + s.Active, n.resting + s.Resting}
	}
	slices.SortFunc(order, func(a, b owner) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.incarnation, b.incarnation))
	})
	rows := make([][]string, len(order))
	for i, o := range order {
		n := owned[o]
		rows[i] = []string{orElse(o.name, "nobody"), strconv.Itoa(n.shards), strconv.Itoa(n.active), strconv.Itoa(n.resting), o.incarnation}
	}
	return printTable(a.stdout, []string{"MEMBER", "SHARDS", "ACTIVE", "RESTING", "INCARNATION"}, rows)
}

func showMoves(a *app, moves []wire.Move) error {
	if len(moves) == 0 {
		fmt.Fprintln(a.stdout, "\nNothing has moved in the last ten minutes.")
		return nil
	}
	fmt.Fprintln(a.stdout)
	rows := make([][]string, len(moves))
	for i, m := range moves {
		from := "nobody"
		if m.From != nil {
			from = nameOf(*m.From)
		}
		rows[i] = []string{formatTime(m.At), strconv.Itoa(m.Shards), from, nameOf(m.To)}
	}
	return printTable(a.stdout, []string{"MOVED", "SHARDS", "FROM", "TO"}, rows)
}

func nameOf(m wire.MemberName) string { return orElse(m.Name, m.Incarnation) }

type drainCmd struct {
	remoteFlags
	Member string `arg:"" complete:"member" help:"Name or incarnation of the member, or what the incarnation begins with. Any other member may be asked, too."`
	Undo   bool   `help:"Have it take tasks again."`
	Wait   bool   `help:"Come back when it owns no shards any more."`
}

// Help describes the purpose of the command.
func (drainCmd) Help() string {
	return `The member lives on and answers requests; workers that are attached to it stay. It takes no tasks until it is started again, or --undo.
Nothing that runs is repeated, and callers see no error. troupe serve does the same by itself when it is asked to end.`
}

func (c *drainCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	defer server.Close()
	if c.Member, err = memberNamed(ctx, server, c.Member); err != nil {
		return err
	}
	member, err := c.drainMember(ctx, server)
	if err != nil {
		return err
	}
	if c.isJSON() {
		return printJSON(a.stdout, member)
	}
	switch {
	case c.Undo:
		fmt.Fprintf(a.stdout, "%s takes tasks again\n", member.Name)
	case member.Shards == 0:
		fmt.Fprintf(a.stdout, "%s owns no shards, and takes none\n", member.Name)
	default:
		fmt.Fprintf(a.stdout, "%s hands %s over, and takes none\n", member.Name, formatCount(member.Shards, "shard"))
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

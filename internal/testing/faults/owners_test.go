package faults

import (
	"context"
	"fmt"
)

// spread returns an error unless every member owns some of the tasks.
func (c *testCluster) spread(ctx context.Context, tasks []string) error {
	owned := map[string]int{}
	var name string
	var count int
	err := c.query(ctx,
		`SELECT m.name, count(*) FROM troupe.tasks t JOIN troupe.shards s ON s.shard = t.shard JOIN troupe.members m ON m.incarnation = s.owner
		WHERE m.fenced_at = 0 AND t.id = ANY($1) GROUP BY m.name`, tasks, []any{&name, &count}, func() { owned[name] = count })
	if err != nil {
		return err
	}
	for _, m := range c.members {
		if owned[m.name] == 0 {
			return fmt.Errorf("%s owns none of the tasks: %v", m.name, owned)
		}
	}
	return nil
}

// owners returns the incarnation that owns each shard.
func (c *testCluster) owners(ctx context.Context) (map[int]string, error) {
	owners := map[int]string{}
	var shard int
	var owner string
	err := c.query(ctx, "SELECT shard, owner FROM troupe.shards WHERE shard >= $1", 0,
		[]any{&shard, &owner}, func() { owners[shard] = owner })
	return owners, err
}

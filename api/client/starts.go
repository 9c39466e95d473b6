package client

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/troupe-engine/troupe/api/wire"
)

// StartAll starts many tasks, up to 1,000 per request, and returns the result of each at its index.
// Starts without an idempotency key get one. Starts that were refused as busy are retried.
func (c *Client) StartAll(ctx context.Context, starts []wire.StartRequest) ([]wire.BatchStartResult, error) {
	starts, own := slices.Clone(starts), crand.Text()
	given := make([]bool, len(starts))
	left := make([]int, len(starts))
	for i := range starts {
		if left[i] = i; starts[i].IdempotencyKey == "" {
			starts[i].IdempotencyKey, given[i] = own+":"+strconv.Itoa(i), true
		}
	}
	items := make([]wire.BatchStartResult, len(starts))
	for try := 0; ; try++ {
		if err := c.startThese(ctx, starts, left, items); err != nil {
			return nil, err
		}
		left = slices.DeleteFunc(left, func(i int) bool { return items[i].Problem == nil || !isTemporary(items[i].Problem.Status) })
		if len(left) == 0 || try >= c.opts.Retries || !sleepContext(ctx, backOff(try, nil)) {
			break
		}
	}
	for i := range items {
		// an earlier try of this call may have started the task
		items[i].Created = items[i].Created || given[i] && items[i].Problem == nil
	}
	return items, nil
}

// startThese sends the starts at the given indexes and stores their results in items.
func (c *Client) startThese(ctx context.Context, starts []wire.StartRequest, places []int, items []wire.BatchStartResult) error {
	var sent wire.BatchStartRequest
	for _, i := range places {
		sent.Starts = append(sent.Starts, starts[i])
	}
	body, err := encodeBody(sent)
	if err != nil {
		return fmt.Errorf("starting many tasks: %w", err)
	}
	answer, err := doCall[wire.BatchStartResults](ctx, c, apiCall{method: http.MethodPost,
		path: "/v1/tasks/starts", body: body, kind: "application/json", repeatable: true, wait: bulkTime})
	if err != nil {
		return err
	}
	if len(answer.Items) != len(places) {
		return fmt.Errorf("starting many tasks: %d were asked for, and the answer tells of %d", len(places), len(answer.Items))
	}
	for n, i := range places {
		items[i] = answer.Items[n]
	}
	return nil
}

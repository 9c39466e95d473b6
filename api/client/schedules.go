package client

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
)

// Schedules lists schedules of a flow by name. flow "" means all flows.
func (c *Client) Schedules(ctx context.Context, flow string, p Paging) (*wire.Page[wire.Schedule], error) {
	q := p.queryValues()
	setNonEmpty(q, "flow", flow)
	return getJSON[wire.Page[wire.Schedule]](ctx, c, "/v1/schedules", q)
}

// Schedule reads a schedule.
func (c *Client) Schedule(ctx context.Context, name string) (*wire.Schedule, error) {
	return getJSON[wire.Schedule](ctx, c, schedulePath(name, ""), nil)
}

func schedulePath(name, what string) string { return "/v1/schedules/" + url.PathEscape(name) + what }

// SetSchedule creates or changes a schedule.
func (c *Client) SetSchedule(ctx context.Context, name string, spec wire.ScheduleSpec) (*wire.ScheduleResult, error) {
	return sendJSON[wire.ScheduleResult](ctx, c, http.MethodPut, schedulePath(name, ""), nil, spec)
}

// DeleteSchedule deletes a schedule; its tasks are not affected.
func (c *Client) DeleteSchedule(ctx context.Context, name string) (*wire.Schedule, error) {
	return doCall[wire.Schedule](ctx, c, apiCall{method: http.MethodDelete, path: schedulePath(name, ""), repeatable: true})
}

// EnableSchedule makes a schedule fire again.
func (c *Client) EnableSchedule(ctx context.Context, name string) (*wire.Schedule, error) {
	return doCall[wire.Schedule](ctx, c, apiCall{method: http.MethodPost, path: schedulePath(name, "/enable"), repeatable: true})
}

// DisableSchedule stops a schedule from firing.
func (c *Client) DisableSchedule(ctx context.Context, name string) (*wire.Schedule, error) {
	return doCall[wire.Schedule](ctx, c, apiCall{method: http.MethodPost, path: schedulePath(name, "/disable"), repeatable: true})
}

// NextSlots returns the next slots of a schedule after a time. A zero from means now, and count 0
// means that the server decides.
func (c *Client) NextSlots(ctx context.Context, name string, count int, from time.Time) (*wire.Slots, error) {
	return getJSON[wire.Slots](ctx, c, schedulePath(name, "/next"), countQuery(count, from))
}

// PreviewSchedule returns the slots of a schedule without storing the schedule.
func (c *Client) PreviewSchedule(ctx context.Context, spec wire.ScheduleSpec, count int, from time.Time) (*wire.Slots, error) {
	return sendJSON[wire.Slots](ctx, c, http.MethodPost, "/v1/schedules-preview", countQuery(count, from), spec)
}

func countQuery(count int, from time.Time) url.Values {
	q := url.Values{}
	if count > 0 {
		q.Set("count", strconv.Itoa(count))
	}
	if !from.IsZero() {
		q.Set("from", from.UTC().Format(time.RFC3339Nano))
	}
	return q
}

// TriggerSchedule starts a task of a schedule now. Without an idempotency key, the client generates
// one, so that a retry starts no second task.
func (c *Client) TriggerSchedule(ctx context.Context, name string, t wire.TriggerRequest) (*wire.StartResult, error) {
	if t.IdempotencyKey == "" {
		t.IdempotencyKey = crand.Text()
	}
	return sendJSON[wire.StartResult](ctx, c, http.MethodPost, schedulePath(name, "/trigger"), nil, t)
}

// BackfillSchedule starts tasks for past slots; a dry run only returns the slots.
func (c *Client) BackfillSchedule(ctx context.Context, name string, b wire.BackfillRequest) (*wire.BackfillResult, error) {
	return sendJSON[wire.BackfillResult](ctx, c, http.MethodPost, schedulePath(name, "/backfill"), nil, b)
}

// sendJSON sends a request with a JSON body, which may be repeated.
func sendJSON[T any](ctx context.Context, c *Client, method, path string, query url.Values, content any) (*T, error) {
	body, err := encodeBody(content)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	return doCall[T](ctx, c, apiCall{method: method, path: path, query: query, body: body, kind: "application/json", repeatable: true})
}

package client

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
)

// Hooks lists hooks, in order of name.
func (c *Client) Hooks(ctx context.Context, p Paging) (*wire.Page[wire.Hook], error) {
	return getJSON[wire.Page[wire.Hook]](ctx, c, "/v1/hooks", p.queryValues())
}

// Hook reads a hook, without its secret.
func (c *Client) Hook(ctx context.Context, name string) (*wire.Hook, error) {
	return getJSON[wire.Hook](ctx, c, "/v1/hooks/"+url.PathEscape(name), nil)
}

// SetHook creates or changes a hook. It is never retried, because a generated secret is returned
// only once.
func (c *Client) SetHook(ctx context.Context, name string, h wire.HookSettings) (*wire.HookResult, error) {
	body, err := encodeBody(h)
	if err != nil {
		return nil, err
	}
	return doCall[wire.HookResult](ctx, c, apiCall{method: http.MethodPut,
		path: "/v1/hooks/" + url.PathEscape(name), body: body, kind: "application/json"})
}

// DeleteHook deletes a hook and returns its last state.
func (c *Client) DeleteHook(ctx context.Context, name string) (*wire.Hook, error) {
	return doCall[wire.Hook](ctx, c, apiCall{method: http.MethodDelete, path: "/v1/hooks/" + url.PathEscape(name)})
}

// Delivery is a message to a hook.
type Delivery struct {
	ID   string    // id of the delivery, equal for repetitions; "" means a new id
	At   time.Time // time of the signature; zero means now
	Kind string    // Content-Type of the body; "" means application/json
	Body []byte
}

// Deliver sends a delivery to a hook, signed with its secret in the form of Standard Webhooks. It
// needs no token.
func (c *Client) Deliver(ctx context.Context, hook, secret string, d Delivery) (*wire.HookDelivery, error) {
	if d.ID == "" {
		d.ID = "msg_" + rand.Text()
	}
	if d.At.IsZero() {
		d.At = time.Now()
	}
	if d.Kind == "" {
		d.Kind = "application/json"
	}
	return doCall[wire.HookDelivery](ctx, c, apiCall{method: http.MethodPost,
		path: "/v1/hooks/" + url.PathEscape(hook), header: d.signHeaders(secret),
		body: d.Body, kind: d.Kind, repeatable: true})
}

// signHeaders returns the signature headers of Standard Webhooks.
func (d *Delivery) signHeaders(secret string) http.Header {
	key := []byte(secret)
	if text, ok := strings.CutPrefix(secret, "whsec_"); ok {
		if decoded, err := base64.StdEncoding.DecodeString(text); err == nil {
			key = decoded
		}
	}
	at := strconv.FormatInt(d.At.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(d.ID + "." + at + ".")) // Write never fails
	mac.Write(d.Body)
	h := http.Header{}
	h.Set("Webhook-Id", d.ID)
	h.Set("Webhook-Timestamp", at)
	h.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return h
}

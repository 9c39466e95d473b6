package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/troupe-engine/troupe/persistence"
)

// peerCaller opens streams to one incarnation of another member. It proves that it has the
// cluster's secret, and accepts only servers that prove the same.
type peerCaller struct {
	client *http.Client
	id     Identity
	to     string
	now    func() time.Time
	hold   bool // send no data before the server has proved itself
}

func (p *Peers) newClient(to persistence.MemberRow, path string) *connect.Client[frame, frame] {
	c := peerCaller{client: p.client, id: p.id, to: to.Incarnation, now: p.Now, hold: path == deliverPath}
	return connect.NewClient[frame, frame](c, strings.TrimSuffix(to.URL, "/")+path,
		connect.WithCodec(frameCodec{}), connect.WithReadMaxBytes(mostRead), connect.WithAcceptCompression("gzip", nil, nil))
}

// Do opens a stream that ends with its context. The HTTP client alone would detect the end only
// when it sends.
func (c peerCaller) Do(r *http.Request) (*http.Response, error) {
	c.id.signRequest(r.Header, c.to, c.now())
	known := func() {}
	if c.hold {
		h := holdBack(r)
		known = func() { close(h.verified) }
	}
	res, err := c.client.Do(r)
	if err != nil {
		return nil, err
	}
	if err := c.checkAnswer(r, res); err != nil {
		_ = res.Body.Close() // the body is not needed
		return nil, err
	}
	known()
	// the body is not needed anymore
	context.AfterFunc(r.Context(), func() { _ = res.Body.Close() })
	return res, nil
}

// mostReason is the maximum number of bytes read of a refusal.
const mostReason = 500

// checkAnswer returns an error if a response does not come from the intended member.
func (c peerCaller) checkAnswer(asked *http.Request, res *http.Response) error {
	if res.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(res.Body, mostReason)) // an incomplete reason is enough
		return fmt.Errorf("it answers %s: %s", res.Status, strings.TrimSpace(string(why)))
	}
	if !c.id.verifyProof("answers", asked.Header, res.Header) {
		return errors.New("who answers there does not prove to have the secret of the cluster")
	}
	return nil
}

// delayedBody is a request body that is sent only after the server is verified.
type delayedBody struct {
	io.ReadCloser
	verified chan struct{}
	closed   context.Context
	close    context.CancelFunc
}

func holdBack(r *http.Request) *delayedBody {
	h := &delayedBody{ReadCloser: r.Body, verified: make(chan struct{})}
	h.closed, h.close = context.WithCancel(r.Context())
	r.Body = h
	return h
}

func (h *delayedBody) Read(b []byte) (int, error) {
	select {
	case <-h.verified:
		return h.ReadCloser.Read(b)
	case <-h.closed.Done():
		return 0, h.closed.Err()
	}
}

func (h *delayedBody) Close() error {
	h.close()
	return h.ReadCloser.Close()
}

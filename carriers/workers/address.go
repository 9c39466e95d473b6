package workers

import (
	"cmp"
	"context"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/carriers/internal/reach"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// These are the limits of a registration.
const (
	maxName     = 256
	maxURL      = 2048
	maxServices = 1000
	maxLabels   = 100
	resolveTime = 3 * time.Second
)

// checkWorker refuses registrations that cannot be called or shown.
func (r *Registry) checkWorker(ctx context.Context, w *persistence.Worker) error {
	if w.ID == "" || len(w.ID) > maxName {
		return flow.Errorf(flow.Invalid, "a worker needs an id of 1 to %d bytes", maxName)
	}
	if len(w.URL) > maxURL || len(w.Type) > maxName || len(w.Services) > maxServices {
		return flow.Errorf(flow.Invalid, "worker %q: a url has at most %d bytes, a type %d, and there are at most %d services",
			w.ID, maxURL, maxName, maxServices)
	}
	for _, s := range w.Services {
		if s == "" || len(s) > maxName {
			return flow.Errorf(flow.Invalid, "worker %q: a service's name has 1 to %d bytes", w.ID, maxName)
		}
	}
	if err := checkLabels(w); err != nil {
		return err
	}
	if err := checkTexts(w); err != nil {
		return err
	}
	if w.Type != "http" {
		w.Secret = ""
		return nil // such a worker is not called
	}
	if err := checkSecret(w); err != nil {
		return err
	}
	return r.checkURL(ctx, w.URL)
}

func checkTexts(w *persistence.Worker) error {
	return cmp.Or(flow.CheckNames("the worker's id", w.ID), flow.CheckText("the worker's url",
		w.URL), flow.CheckText("the worker's type", w.Type),
		flow.CheckNames("the service", w.Services...), flow.CheckNames("the label", w.Labels...))
}

// checkSecret refuses secrets that do not fit into a header.
func checkSecret(w *persistence.Worker) error {
	odd := strings.ContainsFunc(w.Secret, func(r rune) bool { return r <= ' ' || r > '~' })
	if odd || len(w.Secret) > maxName {
		return flow.Errorf(flow.Invalid, "worker %q: a secret has at most %d visible characters of ASCII", w.ID, maxName)
	}
	return nil
}

func checkLabels(w *persistence.Worker) error {
	if len(w.Labels) > maxLabels {
		return flow.Errorf(flow.Invalid, "worker %q: it has %d labels, of at most %d", w.ID, len(w.Labels), maxLabels)
	}
	for _, label := range w.Labels {
		if label == "" || len(label) > maxName {
			return flow.Errorf(flow.Invalid, "worker %q: a label has 1 to %d bytes", w.ID, maxName)
		}
	}
	return nil
}

func (r *Registry) checkURL(ctx context.Context, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return flow.Errorf(flow.Invalid, "worker url %q: want http://host:port", text)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return flow.Errorf(flow.Invalid, "worker url %q: it may have no user, query or fragment", u.Redacted())
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	// the name may become resolvable, and the dialer checks the address of each call
	if err != nil {
		r.opts.Logger.Warn("resolving a worker's host failed: calls fail until it resolves", "url", text, "error", err)
		return nil
	}
	for _, addr := range addrs {
		if r.allowedNetworks().Allowed(addr) {
			return nil
		}
	}
	return flow.Errorf(flow.Invalid, "worker url %q: %s is neither loopback nor in a network "+
		"that this server allows for workers", text, addrs[0].Unmap())
}

// allowedNetworks returns the networks in which workers may be.
func (r *Registry) allowedNetworks() reach.Networks {
	return reach.Networks{Allow: r.opts.Allow, Loopback: true}
}

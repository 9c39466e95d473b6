package troupe

import (
	"context"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

// What hooks are set and told as: the types of /v1.
type (
	Hook         = wire.Hook
	HookSettings = wire.HookSettings
	SetHook      = wire.SetHook
	HookSet      = wire.HookSet
	Delivery     = client.Delivery
	Delivered    = wire.Delivered
)

// Hooks lists hooks, in order of name.
func (e *Engine) Hooks(ctx context.Context, p Paging) (*Page[Hook], error) {
	return answered(e.client.Hooks(ctx, p))
}

// Hook reads a hook, without its secret.
func (e *Engine) Hook(ctx context.Context, name string) (*Hook, error) {
	return answered(e.client.Hook(ctx, name))
}

// SetHook makes a hook, or changes one. A secret that is made is told this once.
func (e *Engine) SetHook(ctx context.Context, name string, h SetHook) (*HookSet, error) {
	return answered(e.client.SetHook(ctx, name, h))
}

// DeleteHook deletes a hook, and tells what it was.
func (e *Engine) DeleteHook(ctx context.Context, name string) (*Hook, error) {
	return answered(e.client.DeleteHook(ctx, name))
}

// Deliver delivers something to a hook as somebody outside does, signed with its secret.
func (e *Engine) Deliver(ctx context.Context, hook, secret string, d Delivery) (*Delivered, error) {
	return answered(e.client.Deliver(ctx, hook, secret, d))
}

package troupe

import (
	"context"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

type (
	// Hook is an address that outside systems call to start or to signal tasks.
	Hook = wire.Hook
	// HookSettings are the settings of a hook.
	HookSettings = wire.HookSpec
	// SetHook creates a hook or changes it.
	SetHook = wire.HookSettings
	// HookSet reports the hook that was set, with its secret if that is new.
	HookSet = wire.HookResult
	// Delivery is one call of a hook.
	Delivery = client.Delivery
	// Delivered reports the effect of a delivery.
	Delivered = wire.HookDelivery
)

// Hooks lists hooks, in order of name.
func (e *hookCalls) Hooks(ctx context.Context, p Paging) (*Page[Hook], error) {
	return withTypedError(e.client.Hooks(ctx, p))
}

// Hook reads a hook, without its secret.
func (e *hookCalls) Hook(ctx context.Context, name string) (*Hook, error) {
	return withTypedError(e.client.Hook(ctx, name))
}

// SetHook creates or changes a hook. A new secret is returned only in this answer.
func (e *hookCalls) SetHook(ctx context.Context, name string, h SetHook) (*HookSet, error) {
	return withTypedError(e.client.SetHook(ctx, name, h))
}

// DeleteHook deletes a hook and returns its last state.
func (e *hookCalls) DeleteHook(ctx context.Context, name string) (*Hook, error) {
	return withTypedError(e.client.DeleteHook(ctx, name))
}

// Deliver sends a delivery to a hook like an outside system, signed with its secret.
func (e *hookCalls) Deliver(ctx context.Context, hook, secret string, d Delivery) (*Delivered, error) {
	return withTypedError(e.client.Deliver(ctx, hook, secret, d))
}

package listing

import (
	"encoding/json"
	"fmt"

	"github.com/troupe-engine/troupe/persistence"
)

// HookColumns are the columns that ScanHook reads.
const HookColumns = "name, settings, secrets, disabled, revision, created_at, updated_at"

// ScanHook reads HookColumns.
func ScanHook(row Row, h *persistence.Hook) error {
	var secrets []byte
	if err := row.Scan(&h.Name, &h.Settings, &secrets, &h.Disabled, &h.Revision, &h.CreatedAt, &h.UpdatedAt); err != nil {
		return err
	}
	if err := json.Unmarshal(secrets, &h.Secrets); err != nil {
		return fmt.Errorf("the secrets of hook %s: %w", h.Name, err)
	}
	return nil
}

// Secrets returns the stored form of secrets.
func Secrets(list []persistence.HookSecret) ([]byte, error) {
	return json.Marshal(append([]persistence.HookSecret{}, list...))
}

// DeliveryColumns are the columns that ScanDelivery reads.
const DeliveryColumns = "hook, id, digest, task, answer, at, until"

// ScanDelivery reads DeliveryColumns.
func ScanDelivery(row Row, d *persistence.Delivery) error {
	return row.Scan(&d.Hook, &d.ID, &d.Digest, &d.Task, &d.Answer, &d.At, &d.Until)
}

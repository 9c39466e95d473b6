package demo

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/troupe-engine/troupe/worker"
)

// readRows reads a table in CSV and returns an object for each line below the header. Numeric cells
// become numbers.
func readRows(_ context.Context, job worker.Job) (any, error) {
	text, ok := decodeValue(job.Input).(string)
	if !ok {
		return nil, worker.Fatal(errors.New("expected a text in CSV"))
	}
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, worker.Fatal(err)
	}
	if len(lines) == 0 {
		return []any{}, nil
	}
	list := []map[string]any{}
	for _, line := range lines[1:] {
		row := map[string]any{}
		for i, text := range line {
			row[lines[0][i]] = parseCell(text)
		}
		list = append(list, row)
	}
	return list, nil
}

func parseCell(text string) any {
	if number, ok := decodeValue(json.RawMessage(text)).(float64); ok {
		return number
	}
	return text
}

// addPrice adds the total price to a row.
func addPrice(_ context.Context, job worker.Job) (any, error) {
	row := decodeObject(job.Input)
	quantity, ok := row["quantity"].(float64)
	each, also := row["price"].(float64)
	if !ok || !also {
		return nil, worker.Fatal(fmt.Errorf("quantity and price of %v must be numbers", row["sku"]))
	}
	priced := maps.Clone(row)
	priced["total"] = quantity * each
	return priced, nil
}

// countStored returns the number of elements of an array as stored.
func countStored(_ context.Context, job worker.Job) (any, error) {
	list, ok := decodeValue(job.Input).([]any)
	if !ok {
		return nil, errors.New("bad input")
	}
	return map[string]int{"stored": len(list)}, nil
}

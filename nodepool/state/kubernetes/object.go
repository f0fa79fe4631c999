package kubernetes

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/nodepool/state"
)

// object is a WorkerPool of which only the journal is decoded, so that unknown fields are kept.
type object struct {
	uid    types.UID
	record state.Record

	fields, status map[string]json.RawMessage
}

func decode(data []byte) (*object, error) {
	o := &object{}
	if err := json.Unmarshal(data, &o.fields); err != nil {
		return nil, err
	}
	var metadata struct {
		UID types.UID `json:"uid"`
	}
	if err := json.Unmarshal(o.fields["metadata"], &metadata); err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	o.uid = metadata.UID
	if status, ok := o.fields["status"]; ok {
		if err := json.Unmarshal(status, &o.status); err != nil {
			return nil, fmt.Errorf("status: %w", err)
		}
	}
	if journal, ok := o.status["journal"]; ok {
		var err error
		if o.record, err = state.Decode(journal); err != nil {
			return nil, fmt.Errorf("status.journal: %w", err)
		}
	}
	return o, nil
}

func (o *object) setJournal(r state.Record) error {
	journal, err := state.Encode(r)
	if err != nil {
		return err
	}
	if o.status == nil {
		o.status = map[string]json.RawMessage{}
	}
	o.status["journal"] = journal
	o.fields["status"], err = json.Marshal(o.status)
	return err
}

package dynamodb

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/foresail/foresail/nodepool/state"
)

// maxJournal bounds a journal, in bytes: a whole item may have 400 KB. Journals are compressed,
// large ones to a tenth and less: that of 1,000 nodes has some 50 KB.
const maxJournal = 300_000

// maxUncompressed bounds the uncompressed size of an item.
const maxUncompressed = 64 << 20

// owner is the pool to which an item belongs.
type owner struct{ cluster, pool string }

// attributes returns the attributes that identify the owner.
func (o owner) attributes() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"clusterUID": text(o.cluster), "pool": text(o.pool)}
}

// decode reads an item; an empty item is that of a pool without a record.
func (o owner) decode(item map[string]types.AttributeValue) (state.Record, error) {
	if other, ok := item["clusterUID"].(*types.AttributeValueMemberS); ok && other.Value != o.cluster {
		return state.Record{}, fmt.Errorf("it belongs to cluster %s, and this is %s: use another state.dynamodb.key, "+
			"or delete the item if that cluster no longer exists", other.Value, o.cluster)
	}
	if other, ok := item["pool"].(*types.AttributeValueMemberS); ok && other.Value != o.pool {
		return state.Record{}, fmt.Errorf("it belongs to pool %s: each pool must have its own key", other.Value)
	}
	journal, ok := item["journal"]
	if !ok {
		return takeOver(item)
	}
	data, ok := journal.(*types.AttributeValueMemberB)
	if !ok {
		return state.Record{}, fmt.Errorf("journal: must be binary, not %T", journal)
	}
	encoded, err := unpack(data.Value)
	if err != nil {
		return state.Record{}, fmt.Errorf("journal: must be compressed with gzip: %w", err)
	}
	r, err := state.Decode(encoded)
	if err != nil {
		return state.Record{}, err
	}
	version, ok := item["version"].(*types.AttributeValueMemberN)
	if !ok || version.Value != strconv.FormatInt(r.Version, 10) {
		return state.Record{}, fmt.Errorf("version: must be that of the journal, %d: another program has written the item",
			r.Version)
	}
	return r, nil
}

// takeOver makes a first record from an item that another autoscaler has written. Its cooldown
// applies to both directions, because the item does not contain the direction.
func takeOver(item map[string]types.AttributeValue) (state.Record, error) {
	if _, ok := item["version"]; ok {
		return state.Record{}, fmt.Errorf("it has a version and no journal: must have both or neither")
	}
	if busy, ok := item["scalingInProgress"]; ok && !isFalse(busy) {
		return state.Record{}, fmt.Errorf(
			"scalingInProgress: another autoscaler has an action open%s: end that first, or set it to false", action(item))
	}
	last, ok := item["lastScaleEpoch"]
	if !ok {
		return state.Record{}, nil
	}
	number, ok := last.(*types.AttributeValueMemberN)
	if !ok {
		return state.Record{}, fmt.Errorf("lastScaleEpoch: must be a number of seconds, not %T", last)
	}
	seconds, err := strconv.ParseFloat(number.Value, 64)
	if err != nil {
		return state.Record{}, fmt.Errorf("lastScaleEpoch: must be a number of seconds: %w", err)
	}
	at := time.Unix(int64(seconds), 0).UTC()
	return state.Record{LastUp: at, LastDown: at}, nil
}

func isFalse(v types.AttributeValue) bool {
	b, ok := v.(*types.AttributeValueMemberBOOL)
	return ok && !b.Value
}

// action describes the open action of another autoscaler, if the item contains it.
func action(item map[string]types.AttributeValue) string {
	for _, name := range []string{"scaleUpActionId", "scaleDownActionId"} {
		if id, ok := item[name].(*types.AttributeValueMemberS); ok {
			return fmt.Sprintf(" (%s %s)", name, id.Value)
		}
	}
	return ""
}

// update returns the write of a record, conditional on the version of the stored one.
func (o owner) update(version int64, r state.Record) (*dynamodb.UpdateItemInput, error) {
	values, err := attributesOf(r)
	if err != nil {
		return nil, err
	}
	maps.Copy(values, o.attributes())
	input := &dynamodb.UpdateItemInput{ExpressionAttributeNames: map[string]string{},
		ExpressionAttributeValues: map[string]types.AttributeValue{}}
	var set, remove []string
	for _, name := range slices.Sorted(maps.Keys(values)) { // in order, so that requests are deterministic
		input.ExpressionAttributeNames["#"+name] = name
		if values[name] == nil {
			remove = append(remove, "#"+name)
			continue
		}
		set = append(set, fmt.Sprintf("#%s = :%s", name, name))
		input.ExpressionAttributeValues[":"+name] = values[name]
	}
	expression := "SET " + strings.Join(set, ", ")
	if len(remove) > 0 {
		expression += " REMOVE " + strings.Join(remove, ", ")
	}
	input.UpdateExpression = aws.String(expression)

	condition := "#version = :seen AND #pool = :pool AND #clusterUID = :clusterUID"
	input.ExpressionAttributeValues[":seen"] = number(version)
	if version == 0 {
		condition = "attribute_not_exists(#version) AND attribute_not_exists(#journal) AND" +
			" (attribute_not_exists(#scalingInProgress) OR #scalingInProgress = :seen)"
		input.ExpressionAttributeValues[":seen"] = &types.AttributeValueMemberBOOL{}
	}
	input.ConditionExpression = aws.String(condition)
	return input, nil
}

// attributesOf returns the attributes of a record by name, nil for those to remove.
func attributesOf(r state.Record) (map[string]types.AttributeValue, error) {
	encoded, err := state.Encode(r)
	if err != nil {
		return nil, err
	}
	journal, err := pack(encoded)
	if err != nil {
		return nil, fmt.Errorf("compress the journal: %w", err)
	}
	if len(journal) > maxJournal {
		return nil, fmt.Errorf("%w: the journal has %d bytes and an item holds at most %d",
			state.ErrTooLarge, len(journal), maxJournal)
	}
	values := map[string]types.AttributeValue{
		"version": number(r.Version), "leaseOwner": text(r.Owner), "journal": &types.AttributeValueMemberB{Value: journal},
		"scalingInProgress": &types.AttributeValueMemberBOOL{Value: r.Action != nil},
		"lastScaleEpoch":    nil,
		"scaleUpActionId":   nil, "scaleUpStartedEpoch": nil, "scaleUpRequested": nil, "scaleUpInstanceIds": nil,
		"scaleDownActionId": nil, "scaleDownStartedEpoch": nil, "scaleDownTargetInstanceIds": nil,
		"scaleDownCompletedInstanceIds": nil,
	}
	if last := later(r.LastUp, r.LastDown); !last.IsZero() {
		values["lastScaleEpoch"] = number(last.Unix())
	}
	if a := r.Action; a != nil {
		maps.Copy(values, actionAttributes(a))
	}
	return values, nil
}

func actionAttributes(a *state.Action) map[string]types.AttributeValue {
	if a.Kind == state.ActionUp {
		launched := []string{}
		for _, slot := range a.Slots {
			if slot.InstanceID != "" {
				launched = append(launched, slot.InstanceID)
			}
		}
		return map[string]types.AttributeValue{
			"scaleUpActionId": text(a.ID), "scaleUpStartedEpoch": number(a.Started.Unix()),
			"scaleUpRequested": number(int64(len(a.Slots))), "scaleUpInstanceIds": list(launched),
		}
	}
	targets, completed := []string{}, []string{}
	for _, target := range a.Targets {
		targets = append(targets, target.InstanceID)
		if target.State == state.RemovalCompleted {
			completed = append(completed, target.InstanceID)
		}
	}
	return map[string]types.AttributeValue{
		"scaleDownActionId": text(a.ID), "scaleDownStartedEpoch": number(a.Started.Unix()),
		"scaleDownTargetInstanceIds": list(targets), "scaleDownCompletedInstanceIds": list(completed),
	}
}

// pack compresses a journal.
func pack(journal []byte) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(journal); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func unpack(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, maxUncompressed))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func list(items []string) types.AttributeValue {
	values := []types.AttributeValue{}
	for _, item := range items {
		values = append(values, text(item))
	}
	return &types.AttributeValueMemberL{Value: values}
}

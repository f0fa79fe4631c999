package dynamodb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/state"
)

// DefaultHashKey is the name of the partition key of a table.
const DefaultHashKey = "clusterId"

// Options configures where journals are stored.
type Options struct {
	Table   string
	HashKey string // name of the table's partition key, a string; "" = DefaultHashKey
	Key     string // its value; "" = the name of the pool
	Cluster string // uid of the cluster of the pools, because other clusters may have pools with the same names
}

// Store keeps journals in a table. It is safe for concurrent use.
type Store struct {
	client  *dynamodb.Client
	options Options
}

var _ state.Store = (*Store)(nil)

// New returns a store that uses client.
func New(client *dynamodb.Client, o Options) *Store {
	o.HashKey = cmp.Or(o.HashKey, DefaultHashKey)
	return &Store{client: client, options: o}
}

// Connect returns the store of a WorkerPool, with the credentials of the environment. The table is
// in a region, or if that is "" in the one of the environment. Connect makes no request.
func Connect(ctx context.Context, spec v1alpha1.DynamoDBState, region, cluster string) (*Store, error) {
	var options []func(*config.LoadOptions) error
	if region != "" {
		options = append(options, config.WithRegion(region))
	}
	loaded, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("load the configuration of AWS: %w", err)
	}
	return New(dynamodb.NewFromConfig(loaded),
		Options{Table: spec.Table, HashKey: spec.HashKey, Key: spec.Key, Cluster: cluster}), nil
}

// Load reads the item of a pool, with strong consistency.
func (s *Store) Load(ctx context.Context, pool string) (state.Record, error) {
	output, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      aws.String(s.options.Table),
		Key:            s.key(pool),
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return state.Record{}, fmt.Errorf("load the journal from %s: %w", s.place(pool), s.explain(err))
	}
	r, err := s.of(pool).decode(output.Item)
	if err != nil {
		return state.Record{}, fmt.Errorf("load the journal from %s: %w", s.place(pool), err)
	}
	return r, nil
}

// Save writes the item of a pool. It tries once: a client that retries after a lost answer would
// find its own write, and take it for that of another writer.
func (s *Store) Save(ctx context.Context, pool string, r state.Record) (state.Record, error) {
	written := r
	written.Version++
	input, err := s.of(pool).update(r.Version, written)
	if err != nil {
		return state.Record{}, fmt.Errorf("save the journal to %s: %w", s.place(pool), err)
	}
	input.TableName, input.Key = aws.String(s.options.Table), s.key(pool)
	_, err = s.client.UpdateItem(ctx, input, func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	if err != nil {
		return state.Record{}, fmt.Errorf("save the journal to %s: %w", s.place(pool), s.explain(err))
	}
	return written, nil
}

func (s *Store) of(pool string) owner { return owner{cluster: s.options.Cluster, pool: pool} }

func (s *Store) key(pool string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{s.options.HashKey: text(cmp.Or(s.options.Key, pool))}
}

func (s *Store) place(pool string) string {
	return fmt.Sprintf("item %s of DynamoDB table %s", cmp.Or(s.options.Key, pool), s.options.Table)
}

// explain adds the meaning of errors of DynamoDB.
func (s *Store) explain(err error) error {
	desired := fmt.Sprintf("must be a table whose partition key is the string %s, without a sort key", s.options.HashKey)
	if _, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return state.ErrConflict
	}
	if _, ok := errors.AsType[*types.ResourceNotFoundException](err); ok {
		return fmt.Errorf("there is no such table: %s: %w", desired, err)
	}
	if refused, ok := errors.AsType[smithy.APIError](err); ok && refused.ErrorCode() == "ValidationException" {
		if strings.Contains(refused.ErrorMessage(), "Item size") {
			return fmt.Errorf("%w: %w", state.ErrTooLarge, err)
		}
		return fmt.Errorf("%s: %w", desired, err)
	}
	return err
}

import { type RawBuilder, sql } from 'kysely'

interface Distinct {
  from: RawBuilder<unknown>
  /** Indexed column or expression that is never null. */
  value: RawBuilder<unknown>
  /** Bound that all values are above; absent: none. */
  after?: RawBuilder<unknown>
  where?: RawBuilder<unknown>
}

/**
 * Part of a statement after `with recursive`: `name (value)` with the distinct values in their order, and a null at the
 * end. Each costs one look into the index, however many rows have it; a limit of the reader ends the steps.
 */
export function distinctValues(name: string, { from, value, after, where = sql`true` }: Distinct): RawBuilder<unknown> {
  const known = sql.ref(`${name}.value`)
  const next = (above: RawBuilder<unknown>) =>
    sql`(select ${value} from ${from} where ${above} and ${where} order by ${value} limit 1)`
  return sql`${sql.ref(name)} (value) as (
    select ${next(after ? sql`${value} > ${after}` : sql`true`)}
    union all
    select ${next(sql`${value} > ${known}`)} from ${sql.ref(name)} where ${known} is not null
  )`
}

import type { SourceState, Visibility } from '../../db/tables.ts'
import type { Direction } from './clip-lists.store.ts'
import type { Sort } from './search/position.ts'

/** Parameters of GET /media that name a list, and a page of it. */
export interface ListQuery
  extends Partial<Record<'q' | 'from' | 'to' | 'tag' | 'album' | 'nsfw' | 'token' | 'cursor', string | undefined>> {
  sort?: Sort
  order?: Direction
  state?: SourceState
  visibility?: Visibility
}

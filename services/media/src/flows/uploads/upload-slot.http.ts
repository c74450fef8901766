import type { FastifyRequest } from 'fastify'
import type { Deps } from '../../deps.ts'

type SlotDeps = Pick<Deps, 'uploads' | 'limits'>

/** Throws queue_full when the caller has as many uploads under way as it may. */
export const refuseWhenFull = ({ uploads, limits }: SlotDeps, request: FastifyRequest): void =>
  uploads.refuseWhenFull(limits.keyOf(request))

export const inSlot = <T>({ uploads, limits }: SlotDeps, request: FastifyRequest, work: () => Promise<T>): Promise<T> =>
  uploads.run(work, { key: limits.keyOf(request) })

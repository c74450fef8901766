import type { ExpressionBuilder } from 'kysely'
import type { DB } from '../../db/tables.ts'
import type { Address } from './address.ts'

/**
 * Whether an admin's word stands for the address that the account has: no other account displaces it then, and no claim changes the account.
 * Rows of older versions, and of replicas that run one, have the word for the account alone: there an address that a setting
 * confirmed came later.
 */
export const isVouched = (eb: ExpressionBuilder<DB, 'users'>, channel: Address['channel']) =>
  eb.or([
    eb(`users.${channel}_vouched`, '=', true),
    eb.and([
      eb(`users.${channel}_assumed`, '=', false),
      eb.or([eb('users.made_by_admin', '=', true), eb('users.invited_at', 'is not', null)]),
    ]),
  ])

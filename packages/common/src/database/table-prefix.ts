import { type KyselyPlugin, OperationNodeTransformer, type SchemableIdentifierNode } from 'kysely'

/** Prefixes the names of these tables in every query that Kysely builds. */
export function tablePrefixPlugin(prefix: string, tables: readonly string[]): KyselyPlugin {
  class TablePrefixTransformer extends OperationNodeTransformer {
    protected override transformSchemableIdentifier(node: SchemableIdentifierNode): SchemableIdentifierNode {
      if (node.schema || !tables.includes(node.identifier.name)) return node
      return { ...node, identifier: { kind: 'IdentifierNode', name: prefix + node.identifier.name } }
    }
  }
  const transformer = new TablePrefixTransformer()
  return {
    transformQuery: ({ node }) => transformer.transformNode(node),
    transformResult: async ({ result }) => result,
  }
}

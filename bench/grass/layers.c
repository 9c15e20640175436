/* layers.c - the perceptron of case `layers`: its gradients as products of inputs and output gradients.
 *
 * Layer l has an input of width[l] and width[l + 1] output gradients; its coordinates are those of its weights,
 * u width[l] + v for output u and input v, and then of its biases.  A batch is, for every layer, n inputs and then n
 * output gradients, each one example after the other.  Rows of the factors are counted in the same order. */
#include "grass.h"

int64_t grass_layers_parameters(const grass_layers *l)
{
    int64_t count = 0;
    for (int i = 0; i + 1 < l->widths; i++) count += (l->width[i] + 1) * l->width[i + 1];
    return count;
}

int64_t grass_layers_values(const grass_layers *l)
{
    int64_t count = 0;
    for (int i = 0; i + 1 < l->widths; i++) count += l->width[i] + l->width[i + 1];
    return count;
}

int grass_layers_factors(const grass_layers *l, float *batch, int64_t n, fs_memory memory, fs_matrix *factors)
{
    int count = 0;
    for (int i = 0; i + 1 < l->widths; i++)
        for (int side = 0; side < 2; side++) {
            factors[count] = fs_batch_major(batch, n, l->width[i + side], FS_F32);
            factors[count++].memory = memory;
            batch += n * l->width[i + side];
        }
    return count;
}

void grass_layers_pair(const grass_layers *l, int64_t coordinate, int32_t pair[2])
{
    int64_t row = 0;
    int i = 0;
    for (; coordinate >= (l->width[i] + 1) * l->width[i + 1]; i++) {
        coordinate -= (l->width[i] + 1) * l->width[i + 1];
        row += l->width[i] + l->width[i + 1];
    }
    const int64_t in = l->width[i], weights = in * l->width[i + 1], outputs = row + in;
    pair[0] = (int32_t)(outputs + (coordinate < weights ? coordinate / in : coordinate - weights));
    pair[1] = (int32_t)(coordinate < weights ? row + coordinate % in : -1);
}

double grass_layers_value(const grass_layers *l, const float *batch, int64_t n, int64_t example, int32_t row)
{
    for (int i = 0; i + 1 < l->widths; i++)
        for (int side = 0; side < 2; side++) {
            const int64_t width = l->width[i + side];
            if (row < width) return batch[example * width + row];
            batch += n * width;
            row -= (int32_t)width;
        }
    return 0;
}
